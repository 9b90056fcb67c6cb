#include "runtime/backends/cpu/stream_copy.hpp"

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace hydrant::cpu {
namespace {

constexpr size_t kMany = size_t{1} << 20;  // about a core's second cache
constexpr size_t kStep = 256, kAhead = 2048;

}  // namespace

void stream_copy(void* to, const void* from, size_t bytes) {
  if (bytes < kMany) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const size_t head = -reinterpret_cast<uintptr_t>(out) % 64;
  std::memcpy(out, in, head);
  out += head, in += head, bytes -= head;
  for (; bytes >= kStep; out += kStep, in += kStep, bytes -= kStep) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kStep; i += 64)
      _mm_prefetch(reinterpret_cast<const char*>(in + kAhead + i), _MM_HINT_NTA);
#pragma GCC unroll 16
    for (size_t i = 0; i < kStep; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)));
  }
  _mm_sfence();  // streamed lines are not ordered with what follows otherwise
  std::memcpy(out, in, bytes);
}

}  // namespace hydrant::cpu
