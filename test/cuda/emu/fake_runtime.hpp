// A CUDA runtime without a device, linked in place of the real one: streams are threads, or a
// seeded choice of who goes next. ThreadSanitizer is told CUDA's own rules of order and no others:
// host before what it enqueues, an operation before the event recorded behind it, an event before
// those who wait for it, both before the host that synchronises.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace emu {

// For mistakes that CUDA would not notice or not explain: a line on standard error, then abort().
[[noreturn]] void die(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Puts work behind what the stream has.
void enqueue(cudaStream_t stream, std::function<void()> work);

// From now on every call fails with `error`, as after a fault of a kernel; cudaSuccess ends that.
void break_device(cudaError_t error);

// What the program has asked of the runtime.
struct Taken {
  size_t device = 0, pinned = 0;            // bytes that it has now
  size_t most_device = 0, most_pinned = 0;  // the most since forget_most()
  int64_t calls = 0;  // so far, that take something: memory, a stream, an event
};
Taken taken();
void forget_most();

}  // namespace emu
