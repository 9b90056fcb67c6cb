// 16 floats in one AVX-512 register; see vec_generic.hpp for what each function means.
#pragma once
#include <cstdint>
#include <cstring>

#include "runtime/backends/cpu/kernels/intrinsics.hpp"
#include "runtime/base/dtype.hpp"
#include "runtime/base/half.hpp"

#include "runtime/backends/cpu/kernels/begin_avx512.inc"
namespace hydrant::cpu::avx512 {

struct Lanes {
  __m512 v;
};
struct Mask {
  __mmask16 v;
};
struct Pairs {
  Lanes even, odd;
};
struct Pair {
  float even, odd;
};

inline Lanes broadcast(float a) { return {_mm512_set1_ps(a)}; }
inline Lanes zero() { return {_mm512_setzero_ps()}; }
inline Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, Lanes a) { _mm512_storeu_ps(p, a.v); }
inline Mask first(int n) { return {__mmask16((1u << n) - 1)}; }
inline Lanes load_first(const float* p, int n) { return {_mm512_maskz_loadu_ps(first(n).v, p)}; }
inline void store_first(float* p, Lanes a, int n) { _mm512_mask_storeu_ps(p, first(n).v, a.v); }

inline Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Lanes operator-(Lanes a, Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Lanes operator/(Lanes a, Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Lanes max(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Lanes min(Lanes a, Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Lanes abs(Lanes a) { return {_mm512_abs_ps(a.v)}; }
inline Lanes round(Lanes a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Lanes sqrt(Lanes a) { return {_mm512_sqrt_ps(a.v)}; }
inline Lanes fma(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Lanes times_power_of_two(Lanes a, Lanes n) { return {_mm512_scalef_ps(a.v, n.v)}; }

inline Mask less(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask equal(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
inline uint32_t bits(Mask m) { return m.v; }
inline Lanes select(Mask m, Lanes yes, Lanes no) {
  return {_mm512_mask_blend_ps(m.v, no.v, yes.v)};
}

inline float reduce_add(Lanes a) {
  const __m256 w = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 v = _mm_add_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
  v = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(v) + _mm_cvtss_f32(_mm_shuffle_ps(v, v, 1));
}
inline float reduce_max(Lanes a) {
  const __m256 w = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 v = _mm_max_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
  v = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps(v, v, 1)));
}

inline Lanes load_bf16(const void* p) {
  const __m256i h = _mm256_loadu_si256(static_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
}
// The BF16 instruction would flush subnormals: the same bits as the other paths are worth more.
inline void store_bf16(void* p, Lanes a) {
  const __m512i u = _mm512_castps_si512(a.v), high = _mm512_srli_epi32(u, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i rounded =
      _mm512_mask_or_epi32(_mm512_srli_epi32(up, 16), nan, high, _mm512_set1_epi32(0x40));
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(rounded));
}
inline Lanes load_f16(const void* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
inline void store_f16(void* p, Lanes a) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}

inline Pairs load_pairs(const void* p) {
  const __m512i v = _mm512_loadu_si512(p), top = _mm512_set1_epi32(int(0xffff0000));
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(v, 16))},
          {_mm512_castsi512_ps(_mm512_and_si512(v, top))}};
}
inline Lanes dot(Lanes sum, const Pairs& w, const Pairs& x) {
  return fma(w.even, x.even, fma(w.odd, x.odd, sum));
}

#include "runtime/backends/cpu/kernels/vec_math.inl"

}  // namespace hydrant::cpu::avx512
#include "runtime/backends/cpu/kernels/end.inc"
