// Elements of caches and weights as f32 and back, and the types behind a DType.
#pragma once
#include "runtime/backends/cuda/portable.cuh"
#include "runtime/base/dtype.hpp"

namespace hydrant::cuda {

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// Eight neighbours in one or two loads of 16 bytes; `at` must be aligned to them.
__device__ inline void load8(const float* at, float (&to)[8]) {
  const float4 a = reinterpret_cast<const float4*>(at)[0];
  const float4 b = reinterpret_cast<const float4*>(at)[1];
  to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
  to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
}
template <class T>
__device__ void load8(const T* at, float (&to)[8]) {
  static_assert(sizeof(T) == 2);
  const uint4 words = *reinterpret_cast<const uint4*>(at);
  T elements[8];
  memcpy(static_cast<void*>(elements), &words, sizeof words);
  for (int i = 0; i < 8; i++) to[i] = to_float(elements[i]);
}

// Calls f with a value of the type of a cache's elements.
template <class F>
cudaError_t with_kv_type(DType dtype, const F& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f16) return f(__half{});
  return f(__nv_bfloat16{});
}

}  // namespace hydrant::cuda
