// 16 int32 in lanes like those of vec_generic.hpp, or 64 bytes, four to a lane.
#pragma once
#include "runtime/backends/cpu/kernels/vec_generic.hpp"

namespace hydrant::cpu::generic {

struct Ints {
  __m128i v[4];
};

template <class Function>
inline Ints each_int_part(const Function& f) {
  return {f(0), f(1), f(2), f(3)};
}

inline Ints broadcast_int(int a) {
  const __m128i v = _mm_set1_epi32(a);
  return {v, v, v, v};
}
inline Ints broadcast_quad(const void* p) {  // the same four bytes in every lane
  int quad;
  memcpy(&quad, p, sizeof quad);
  return broadcast_int(quad);
}
inline Ints load_ints(const void* p) {  // 64 bytes
  return each_int_part([&](int i) { return _mm_loadu_si128(static_cast<const __m128i*>(p) + i); });
}
inline Ints load_u8(const void* p) {  // 16 bytes, widened
  return each_int_part([&](int i) {
    int quad;
    memcpy(&quad, static_cast<const char*>(p) + 4 * i, sizeof quad);
    return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(quad));
  });
}
inline Ints load_i8(const void* p) {
  return each_int_part([&](int i) {
    int quad;
    memcpy(&quad, static_cast<const char*>(p) + 4 * i, sizeof quad);
    return _mm_cvtepi8_epi32(_mm_cvtsi32_si128(quad));
  });
}

inline Ints operator+(Ints a, Ints b) {
  return each_int_part([&](int i) { return _mm_add_epi32(a.v[i], b.v[i]); });
}
inline Ints operator*(Ints a, Ints b) {
  return each_int_part([&](int i) { return _mm_mullo_epi32(a.v[i], b.v[i]); });
}
inline Ints operator&(Ints a, Ints b) {
  return each_int_part([&](int i) { return _mm_and_si128(a.v[i], b.v[i]); });
}
inline Ints operator|(Ints a, Ints b) {
  return each_int_part([&](int i) { return _mm_or_si128(a.v[i], b.v[i]); });
}
inline Ints operator^(Ints a, Ints b) {
  return each_int_part([&](int i) { return _mm_xor_si128(a.v[i], b.v[i]); });
}
template <int bits>
inline Ints shift_left(Ints a) {
  return each_int_part([&](int i) { return _mm_slli_epi32(a.v[i], bits); });
}
template <int bits>
inline Ints shift_right(Ints a) {
  return each_int_part([&](int i) { return _mm_srli_epi32(a.v[i], bits); });
}
inline Ints max_unsigned(Ints a, Ints b) {
  return each_int_part([&](int i) { return _mm_max_epu32(a.v[i], b.v[i]); });
}
inline __m128i fold_max_unsigned(Ints a) {  // in each lane the largest of every fourth of 16
  return _mm_max_epu32(_mm_max_epu32(a.v[0], a.v[1]), _mm_max_epu32(a.v[2], a.v[3]));
}
inline Lanes to_lanes(Ints a) {
  return each_part([&](int i) { return _mm_cvtepi32_ps(a.v[i]); });
}
inline Lanes as_lanes(Ints a) {  // the same bits
  return each_part([&](int i) { return _mm_castsi128_ps(a.v[i]); });
}
inline void store_i8(void* p, Lanes a) {  // rounded to whole numbers, from -128 to 127
  const auto part = [&](int i) { return _mm_cvtps_epi32(a.v[i]); };
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm_packs_epi16(_mm_packs_epi32(part(0), part(1)),
                                                             _mm_packs_epi32(part(2), part(3))));
}

// Bytes of u (unsigned) times bytes of s (signed), neighbours added, in 16 bits.
inline Ints multiply_bytes(Ints u, Ints s) {
  return each_int_part([&](int i) { return _mm_maddubs_epi16(u.v[i], s.v[i]); });
}
inline Ints add_16(Ints a, Ints b) {
  return each_int_part([&](int i) { return _mm_add_epi16(a.v[i], b.v[i]); });
}
inline Ints add_neighbours_16(Ints a) {  // to 32 bits
  return each_int_part([&](int i) { return _mm_madd_epi16(a.v[i], _mm_set1_epi16(1)); });
}
inline Ints abs_bytes(Ints a) {
  return each_int_part([&](int i) { return _mm_abs_epi8(a.v[i]); });
}
inline Ints with_sign_of(Ints a, Ints sign) {  // bytes; zero where the sign is of zero
  return each_int_part([&](int i) { return _mm_sign_epi8(a.v[i], sign.v[i]); });
}

}  // namespace hydrant::cpu::generic
