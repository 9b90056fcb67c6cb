// What products with int8 inputs share: how four columns of a token become codes, and how sums of
// integers become f32.
#pragma once
#include "runtime/backends/cuda/kernels/linear.hpp"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {

inline constexpr int kBlock = 32;                  // columns that have one scale
inline constexpr int kWholeBits = 0x4b400000;      // those of kWhole
inline constexpr float kWhole = 1.5f * (1 << 23);  // has whole neighbours: 2^22 on either side

// Four columns, a byte each, and the scale and the sum of all codes of their block. What is not
// finite spoils its block's scale.
struct FourCodes {
  unsigned codes;
  float scale, sum;
};

__device__ inline int magnitude(float x) { return __float_as_int(x) & 0x7fffffff; }

// The eight lanes that have a block's columns side by side come here together; x is `inside`'s, or
// zeros. Below 1e-30 the inverse could overflow, and nothing can be lost.
__device__ inline FourCodes round_four(const float4& x) {
  constexpr int kLanes = kBlock / 4, kInfinity = 0x7f800000;  // the bits of; larger are NaNs'
  int most = max(max(magnitude(x.x), magnitude(x.y)), max(magnitude(x.z), magnitude(x.w)));
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) most = max(most, exchange(most, lanes));
  const bool sound = most < kInfinity;
  const float largest = __int_as_float(most);
  const float inverse = sound && largest > 1e-30f ? 127.0f / largest : 0.0f;
  const auto code = [&](float value) { return sound ? int(rintf(value * inverse)) : 0; };
  const int a = code(x.x), b = code(x.y), c = code(x.z), d = code(x.w);
  int sum = a + b + c + d;
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) sum += exchange(sum, lanes);
  const auto byte = [](int value, int place) { return (unsigned(value) & 255u) << (8 * place); };
  return {byte(a, 0) | byte(b, 1) | byte(c, 2) | byte(d, 3), sound ? largest / 127.0f : NAN,
          float(sum)};
}

// x[i..i + 3], or zeros where there is nothing.
__device__ inline float4 four_of(const Rows& in, int64_t i, bool inside) {
  return inside ? *reinterpret_cast<const float4*>(in.data + i) : float4{0, 0, 0, 0};
}

}  // namespace hydrant::cuda
