// Integers of the AVX2 path; see ints_generic.hpp for what each function means.
#pragma once
#include "runtime/backends/cpu/kernels/vec_avx2.hpp"

#include "runtime/backends/cpu/kernels/begin_avx2.inc"
namespace hydrant::cpu::avx2 {

struct Ints {
  __m256i low, high;
};

inline Ints broadcast_int(int a) { return {_mm256_set1_epi32(a), _mm256_set1_epi32(a)}; }
inline Ints broadcast_quad(const void* p) {
  int quad;
  memcpy(&quad, p, sizeof quad);
  return broadcast_int(quad);
}
inline Ints load_ints(const void* p) {
  const auto* v = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)};
}
inline Ints load_u8(const void* p) {
  const auto* v = static_cast<const char*>(p);
  return {_mm256_cvtepu8_epi32(_mm_loadu_si64(v)), _mm256_cvtepu8_epi32(_mm_loadu_si64(v + 8))};
}
inline Ints load_i8(const void* p) {
  const auto* v = static_cast<const char*>(p);
  return {_mm256_cvtepi8_epi32(_mm_loadu_si64(v)), _mm256_cvtepi8_epi32(_mm_loadu_si64(v + 8))};
}

inline Ints operator+(Ints a, Ints b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
inline Ints operator*(Ints a, Ints b) {
  return {_mm256_mullo_epi32(a.low, b.low), _mm256_mullo_epi32(a.high, b.high)};
}
inline Ints operator&(Ints a, Ints b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
inline Ints operator|(Ints a, Ints b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
inline Ints operator^(Ints a, Ints b) {
  return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
}
template <int bits>
inline Ints shift_left(Ints a) {
  return {_mm256_slli_epi32(a.low, bits), _mm256_slli_epi32(a.high, bits)};
}
template <int bits>
inline Ints shift_right(Ints a) {
  return {_mm256_srli_epi32(a.low, bits), _mm256_srli_epi32(a.high, bits)};
}
inline Ints max_unsigned(Ints a, Ints b) {
  return {_mm256_max_epu32(a.low, b.low), _mm256_max_epu32(a.high, b.high)};
}
inline __m128i fold_max_unsigned(Ints a) {
  const __m256i w = _mm256_max_epu32(a.low, a.high);
  return _mm_max_epu32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
}
inline Lanes to_lanes(Ints a) { return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)}; }
inline Lanes as_lanes(Ints a) { return {_mm256_castsi256_ps(a.low), _mm256_castsi256_ps(a.high)}; }
inline void store_i8(void* p, Lanes a) {
  const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm_packs_epi16(_mm256_castsi256_si128(ordered),
                                                             _mm256_extracti128_si256(ordered, 1)));
}

inline Ints multiply_bytes(Ints u, Ints s) {
  return {_mm256_maddubs_epi16(u.low, s.low), _mm256_maddubs_epi16(u.high, s.high)};
}
inline Ints add_16(Ints a, Ints b) {
  return {_mm256_add_epi16(a.low, b.low), _mm256_add_epi16(a.high, b.high)};
}
inline Ints add_neighbours_16(Ints a) {
  const __m256i one = _mm256_set1_epi16(1);
  return {_mm256_madd_epi16(a.low, one), _mm256_madd_epi16(a.high, one)};
}
inline Ints abs_bytes(Ints a) { return {_mm256_abs_epi8(a.low), _mm256_abs_epi8(a.high)}; }
inline Ints with_sign_of(Ints a, Ints sign) {
  return {_mm256_sign_epi8(a.low, sign.low), _mm256_sign_epi8(a.high, sign.high)};
}

}  // namespace hydrant::cpu::avx2
#include "runtime/backends/cpu/kernels/end.inc"
