// Owners of memory, and carving one allocation into tensors.
#pragma once
#include <cstddef>
#include <functional>
#include <utility>

#include "runtime/device/tensor.hpp"

namespace hydrant {

// Owns one allocation; move-only. The only type in the project that frees device memory.
class Buffer {
 public:
  using Release = std::function<void(void*, size_t)>;
  Buffer() = default;
  Buffer(void* data, size_t bytes, Memory memory, Release release)
      : data_(data), bytes_(bytes), memory_(memory), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_) release_(data_, bytes_);
  }
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Memory memory() const { return memory_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(memory_, other.memory_);
    std::swap(release_, other.release_);
  }
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Memory memory_ = Memory::device;
  Release release_;
};

// Carves tensors out of one buffer, each aligned to 64 bytes. Made without a buffer it only
// measures, so the function that lays memory out is also the one that sizes it.
class Arena {
 public:
  Arena() = default;                      // measuring: tensors have no data
  explicit Arena(const Buffer& backing);  // carving; throws internal when the buffer is too small
  Tensor take(DType dtype, Shape shape);
  void* take_bytes(size_t bytes);
  size_t used() const { return used_; }

 private:
  std::byte* base_ = nullptr;
  size_t limit_ = 0, used_ = 0;
};

}  // namespace hydrant
