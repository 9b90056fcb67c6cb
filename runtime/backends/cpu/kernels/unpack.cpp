// Rows out of panels.
#include <cstring>

#include "runtime/backends/cpu/kernels/pack.hpp"
#include "runtime/backends/cpu/kernels/panel_layout.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/half.hpp"

namespace hydrant::cpu {
namespace {

uint16_t half_at(const std::byte* p) {
  uint16_t h;
  memcpy(&h, p, sizeof h);
  return h;
}

// value = code * scale + offset; the product is exact in f32 in every format
struct Line {
  float scale, offset;
};
Line line_of(DType format, int64_t block, int half, const std::byte* head, size_t lane) {
  const auto f16 = [&](size_t at) { return f16_to_f32(half_at(head + at + lane * 2)); };
  const std::byte* factors = head + kFactors + block % 8 * 32 + lane;
  switch (format) {
    case DType::q8_0: {
      const float d = f16(size_t(block % 2) * 32);
      return {d, -128 * d};
    }
    case DType::q4_0: {
      const float d = f16(size_t(block % 2) * 32);
      return {d, -8 * d};
    }
    case DType::q4_1:
      return {f16(0), f16(32)};
    case DType::q4_k:
      return {f16(0) * float(uint8_t(factors[0])), f16(32) * float(uint8_t(factors[16]))};
    case DType::q6_k: {
      const float d = f16(0) * float(int8_t(factors[half * 16]));
      return {d, -32 * d};
    }
    default:
      fail(Fault::internal, "{} has no blocks", name(format));
  }
}

int code_of(DType format, const std::byte* codes, size_t lane, size_t i) {
  const size_t quad = i / 4, at = lane * 4 + i % 4;
  if (format == DType::q8_0) return uint8_t(codes[quad * 64 + at]);
  const int low = uint8_t(codes[quad % 4 * 64 + at]) >> (quad / 4 * 4) & 15;
  if (format != DType::q6_k) return low;
  return low | (uint8_t(codes[256 + quad / 4 * 64 + at]) >> (quad % 4 * 2) & 3) << 4;
}

}  // namespace

void unpack_row(DType format, int64_t k, const std::byte* panel, int lane, float* out) {
  const auto column = size_t(lane);
  if (is_quantised(format)) {
    const BlockLayout layout = block_layout(format);
    for (int64_t b = 0; b < k / kBlock; b++)
      for (int half = 0; half < 2; half++) {
        const Line line = line_of(format, b, half, panel + layout.head(b), column);
        for (size_t i = size_t(half) * 16; i < size_t(half) * 16 + 16; i++)
          *out++ =
              float(code_of(format, panel + layout.codes(b), column, i)) * line.scale + line.offset;
      }
    return;
  }
  for (size_t i = 0; i < size_t(k); i++) {
    if (format == DType::f32)
      memcpy(out + i, panel + (i * 16 + column) * 4, 4);
    else if (format == DType::f16)
      out[i] = f16_to_f32(half_at(panel + (i * 16 + column) * 2));
    else
      out[i] = bf16_to_f32(half_at(panel + (i / 2 * 32 + column * 2 + i % 2) * 2));
  }
}

}  // namespace hydrant::cpu
