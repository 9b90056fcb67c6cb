// 16 floats in two AVX2 registers; see vec_generic.hpp for what each function means.
#pragma once
#include <cstdint>
#include <cstring>

#include "runtime/backends/cpu/kernels/intrinsics.hpp"
#include "runtime/base/dtype.hpp"
#include "runtime/base/half.hpp"

#include "runtime/backends/cpu/kernels/begin_avx2.inc"
namespace hydrant::cpu::avx2 {

struct Lanes {
  __m256 low, high;
};
struct Mask {
  __m256 low, high;
};
struct Pairs {
  Lanes even, odd;
};
struct Pair {
  float even, odd;
};

inline Lanes broadcast(float a) { return {_mm256_set1_ps(a), _mm256_set1_ps(a)}; }
inline Lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, Lanes a) {
  _mm256_storeu_ps(p, a.low);
  _mm256_storeu_ps(p + 8, a.high);
}
inline Mask first(int n) {
  const __m256i order = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), order)),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8), order))};
}
inline Lanes load_first(const float* p, int n) {
  const Mask m = first(n);
  return {_mm256_maskload_ps(p, _mm256_castps_si256(m.low)),
          _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.high))};
}
inline void store_first(float* p, Lanes a, int n) {
  const Mask m = first(n);
  _mm256_maskstore_ps(p, _mm256_castps_si256(m.low), a.low);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.high), a.high);
}

inline Lanes operator+(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline Lanes operator-(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline Lanes operator*(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline Lanes operator/(Lanes a, Lanes b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
inline Lanes max(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline Lanes min(Lanes a, Lanes b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
inline Lanes abs(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
inline Lanes round(Lanes a) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.low, nearest), _mm256_round_ps(a.high, nearest)};
}
inline Lanes sqrt(Lanes a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline __m256 times_power_of_two(__m256 a, __m256 n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(126));
  return _mm256_mul_ps(_mm256_add_ps(a, a), _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}
inline Lanes times_power_of_two(Lanes a, Lanes n) {
  return {times_power_of_two(a.low, n.low), times_power_of_two(a.high, n.high)};
}

inline Mask less(Lanes a, Lanes b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
}
inline Mask equal(Lanes a, Lanes b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ)};
}
inline uint32_t bits(Mask m) {
  return uint32_t(_mm256_movemask_ps(m.low)) | uint32_t(_mm256_movemask_ps(m.high)) << 8;
}
inline Lanes select(Mask m, Lanes yes, Lanes no) {
  return {_mm256_blendv_ps(no.low, yes.low, m.low), _mm256_blendv_ps(no.high, yes.high, m.high)};
}

inline float reduce_add(Lanes a) {
  const __m256 w = _mm256_add_ps(a.low, a.high);
  __m128 v = _mm_add_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
  v = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(v) + _mm_cvtss_f32(_mm_shuffle_ps(v, v, 1));
}
inline float reduce_max(Lanes a) {
  const __m256 w = _mm256_max_ps(a.low, a.high);
  __m128 v = _mm_max_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
  v = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps(v, v, 1)));
}

inline __m256 widen_bf16(__m128i h) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
inline Lanes load_bf16(const void* p) {
  const auto* h = static_cast<const __m128i*>(p);
  return {widen_bf16(_mm_loadu_si128(h)), widen_bf16(_mm_loadu_si128(h + 1))};
}
inline __m256i round_to_bf16(__m256 a) {  // in the low halves
  const __m256i u = _mm256_castps_si256(a), high = _mm256_srli_epi32(u, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(_mm256_srli_epi32(up, 16),
                            _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
}
inline void store_bf16(void* p, Lanes a) {
  const __m256i mixed = _mm256_packus_epi32(round_to_bf16(a.low), round_to_bf16(a.high));
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm256_permute4x64_epi64(mixed, 0xd8));
}
inline Lanes load_f16(const void* p) {
  const auto* h = static_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(h)), _mm256_cvtph_ps(_mm_loadu_si128(h + 1))};
}
inline void store_f16(void* p, Lanes a) {
  auto* h = static_cast<__m128i*>(p);
  _mm_storeu_si128(h, _mm256_cvtps_ph(a.low, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(h + 1, _mm256_cvtps_ph(a.high, _MM_FROUND_TO_NEAREST_INT));
}

inline Pairs load_pairs(const void* p) {
  const auto* h = static_cast<const __m256i*>(p);
  const __m256i a = _mm256_loadu_si256(h), b = _mm256_loadu_si256(h + 1);
  const __m256i top = _mm256_set1_epi32(int(0xffff0000));
  return {{_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
           _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))},
          {_mm256_castsi256_ps(_mm256_and_si256(a, top)),
           _mm256_castsi256_ps(_mm256_and_si256(b, top))}};
}
inline Lanes dot(Lanes sum, const Pairs& w, const Pairs& x) {
  return fma(w.even, x.even, fma(w.odd, x.odd, sum));
}

#include "runtime/backends/cpu/kernels/vec_math.inl"

}  // namespace hydrant::cpu::avx2
#include "runtime/backends/cpu/kernels/end.inc"
