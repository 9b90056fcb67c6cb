// Integers of the AVX-512 paths; see ints_generic.hpp for what each function means.
#pragma once
#include "runtime/backends/cpu/kernels/vec_avx512.hpp"

#include "runtime/backends/cpu/kernels/begin_avx512.inc"
namespace hydrant::cpu::avx512 {

struct Ints {
  __m512i v;
};

inline Ints broadcast_int(int a) { return {_mm512_set1_epi32(a)}; }
inline Ints broadcast_quad(const void* p) {
  int quad;
  memcpy(&quad, p, sizeof quad);
  return broadcast_int(quad);
}
inline Ints load_ints(const void* p) { return {_mm512_loadu_si512(p)}; }
inline Ints load_u8(const void* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
inline Ints load_i8(const void* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}

inline Ints operator+(Ints a, Ints b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline Ints operator-(Ints a, Ints b) { return {_mm512_sub_epi32(a.v, b.v)}; }
inline Ints operator*(Ints a, Ints b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
inline Ints operator&(Ints a, Ints b) { return {_mm512_and_si512(a.v, b.v)}; }
inline Ints operator|(Ints a, Ints b) { return {_mm512_or_si512(a.v, b.v)}; }
template <int bits>
inline Ints shift_left(Ints a) {
  return {_mm512_slli_epi32(a.v, bits)};
}
template <int bits>
inline Ints shift_right(Ints a) {
  return {_mm512_srli_epi32(a.v, bits)};
}
inline Ints max_unsigned(Ints a, Ints b) { return {_mm512_max_epu32(a.v, b.v)}; }
inline __m128i fold_max_unsigned(Ints a) {
  const __m256i w =
      _mm256_max_epu32(_mm512_castsi512_si256(a.v), _mm512_extracti32x8_epi32(a.v, 1));
  return _mm_max_epu32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
}
inline Lanes to_lanes(Ints a) { return {_mm512_cvtepi32_ps(a.v)}; }
inline Lanes as_lanes(Ints a) { return {_mm512_castsi512_ps(a.v)}; }
inline void store_i8(void* p, Lanes a) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}

// sum + the dot of four bytes of u (unsigned) and of s (signed) in each lane
inline Ints add_dot(Ints sum, Ints u, Ints s) { return {_mm512_dpbusd_epi32(sum.v, u.v, s.v)}; }

}  // namespace hydrant::cpu::avx512
#include "runtime/backends/cpu/kernels/end.inc"
