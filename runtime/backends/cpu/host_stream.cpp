#include "runtime/backends/cpu/host_stream.hpp"

#include "runtime/backends/cpu/stream_copy.hpp"

namespace hydrant::cpu {

void HostStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  enqueue(bytes, [to, from](size_t count) { stream_copy(to, from, count); });
}

void HostStream::fill(void*, size_t, std::function<void()> work) {
  enqueue(work, [](const std::function<void()>& w) { w(); });
}

}  // namespace hydrant::cpu
