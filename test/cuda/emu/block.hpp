// What a kernel's threads ask of the emulator. A block runs to its end before the next one begins,
// its threads taking turns on one OS thread: each goes on until it must wait for others.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <functional>

namespace emu {

struct Thread {
  uint3 index;
  unsigned linear;  // in its block
};
struct Grid {
  uint3 block_index;
  dim3 block, grid;
};
extern thread_local Thread* current;
extern thread_local Grid* geometry;

// Where a call stands in the kernel: threads that meet must meet at the same place.
struct Place {
  const char* file;
  int line;
};

enum class WarpOp : unsigned char { shuffle, vote, sync, matrix, load_matrix };
struct Slot {
  alignas(16) unsigned char bytes[64];
};
struct Exchange {
  const Slot* slots;  // [lane]
  unsigned arrived;   // lanes that really came; the others have ended
};
// The lanes of `mask` each put down `bytes` and see those of all. Only `sync` orders memory.
Exchange warp_exchange(unsigned mask, WarpOp op, const void* value, size_t bytes, Place place);
void sync_block(Place place);
void fence();

// Copies of 16 bytes that this thread has asked for, in groups; they are made when it waits.
struct Copy {
  void* to;
  const void* from;
};
void copy_later(void* to, const void* from, Place place);
void end_copies();
// The next one of all groups but the latest `groups`; false: there is none.
bool take_copy(Copy& copy, size_t groups);

void* dynamic_shared();
// The block's variable that `key` stands for: new for each block, full of NaN.
void* named_shared(const void* key, size_t bytes);

[[noreturn]] void fail(Place place, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Runs a grid in the calling OS thread.
void run_grid(const char* name, dim3 grid, dim3 block, size_t shared_bytes,
              const std::function<void()>& body);
// Puts it behind the other work of a stream.
cudaError_t enqueue_launch(const void* kernel, dim3 grid, dim3 block, size_t shared_bytes,
                           cudaStream_t stream, std::function<void()> body);

}  // namespace emu
