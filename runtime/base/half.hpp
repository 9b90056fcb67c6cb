// f16 and bf16 <-> f32, in plain C++ for any machine; kernels use instructions instead.
#pragma once
#include <bit>
#include <cstdint>

namespace hydrant {

constexpr float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }

// Rounds to nearest even; a NaN stays a (quiet) NaN.
constexpr uint16_t f32_to_bf16(float f) {
  const uint32_t u = std::bit_cast<uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return uint16_t((u >> 16) | 0x40);
  return uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

constexpr float f16_to_f32(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float small = float(mantissa) * 0x1p-24f;  // zero or subnormal: exact
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(small));
}

// Rounds to nearest even; too large becomes infinity; a NaN stays a (quiet) NaN.
constexpr uint16_t f32_to_f16(float f) {
  const uint32_t u = std::bit_cast<uint32_t>(f), magnitude = u & 0x7fffffffu;
  const uint16_t sign = uint16_t((u >> 16) & 0x8000);
  if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (magnitude >= 0x477ff000u) return uint16_t(sign | 0x7c00);  // rounds past the largest f16
  if (magnitude < 0x38800000u) {  // subnormal: let f32 addition round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  return uint16_t(sign | ((magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000u) >> 13));
}

}  // namespace hydrant
