// The memory of the device that is not there, and pinned memory: fenced in, full of NaN, and known
// by range, so that copies can be held to what they say of themselves.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>

namespace emu {

// Locked by those who call: every function of the fake runtime takes the one lock.
class FakeMemory {
 public:
  cudaError_t allocate(void** at, size_t bytes);
  void free(void* at);
  cudaError_t pin(void** at, size_t bytes);
  void unpin(void* at);
  bool on_device(const void* at, size_t bytes) const { return inside(device_, at, bytes); }
  bool pinned(const void* at, size_t bytes) const { return inside(pinned_, at, bytes); }
  size_t free_bytes() const;
  size_t device_bytes() const { return device_used_; }
  size_t pinned_bytes() const { return pinned_used_; }

  // Deterministic runs: the host cannot touch device memory while no operation runs.
  void open();
  void close();
  // A line on standard error about an address that has faulted, if it is in or behind a block.
  void explain(const void* at) const;

 private:
  struct Block {
    size_t bytes;
    char* base;
    size_t mapped;  // 0: from the heap
  };
  using Blocks = std::map<const char*, Block>;
  static bool inside(const Blocks& blocks, const void* at, size_t bytes);
  void protect(int how) const;

  Blocks device_, pinned_;
  size_t device_used_ = 0, pinned_used_ = 0;
  int open_ = 0;
};

}  // namespace emu
