// 16 floats on any x86-64-v2 machine, and how a family of kernels is compiled for every path.
//
// Each path has one namespace (generic, avx2, avx512, avx512_bf16) and one header vec_PATH.hpp that
// gives it the types and functions declared below, with the same results. A family X is written
// once, in X.inl, without includes and without a namespace, over these names, and compiled four
// times:
//
//   // X_avx2.cpp
//   #include "runtime/backends/cpu/kernels/X_paths.hpp"   what X.inl needs, std headers included
//   #include "runtime/backends/cpu/kernels/vec_avx2.hpp"
//   #include "runtime/backends/cpu/kernels/begin_avx2.inc"
//   namespace hydrant::cpu::avx2 {
//   #include "runtime/backends/cpu/kernels/X.inl"
//   }  // namespace hydrant::cpu::avx2
//   #include "runtime/backends/cpu/kernels/end.inc"
//
// (X_generic.cpp has no begin and end.) There are no -m flags and nothing is included after begin:
// a std function compiled for AVX-512 could be the copy the linker keeps for the whole program. For
// the same reason Lanes must not be handed to std templates. Lambdas over Lanes are written [&],
// even where they capture nothing: g++ compiles the conversion to a function pointer, which only
// plain [] has, without the path's instruction set.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/backends/cpu/kernels/intrinsics.hpp"
#include "runtime/base/dtype.hpp"
#include "runtime/base/half.hpp"

namespace hydrant::cpu::generic {

struct Lanes {
  __m128 v[4];
};
struct Mask {  // one per lane
  __m128 v[4];
};
// 32 bf16 values, two neighbours of k per lane, as floats
struct Pairs {
  Lanes even, odd;
};
// two neighbours of k of one row, rounded to bf16 once, as broadcast() likes them
struct Pair {
  float even, odd;
};

template <class Function>
inline Lanes each_part(const Function& f) {
  return {f(0), f(1), f(2), f(3)};
}

inline Lanes broadcast(float a) {
  const __m128 v = _mm_set1_ps(a);
  return {v, v, v, v};
}
inline Lanes zero() { return broadcast(0); }
inline Lanes load(const float* p) {
  return each_part([&](int i) { return _mm_loadu_ps(p + 4 * i); });
}
inline void store(float* p, Lanes a) {
  for (int i = 0; i < 4; i++) _mm_storeu_ps(p + 4 * i, a.v[i]);
}
// The first n lanes, 0 <= n <= 16; the others are zero and their memory is not touched.
inline Lanes load_first(const float* p, int n) {
  float all[16] = {};
  memcpy(all, p, size_t(n) * sizeof(float));
  return load(all);
}
inline void store_first(float* p, Lanes a, int n) {
  float all[16];
  store(all, a);
  memcpy(p, all, size_t(n) * sizeof(float));
}

inline Lanes operator+(Lanes a, Lanes b) {
  return each_part([&](int i) { return _mm_add_ps(a.v[i], b.v[i]); });
}
inline Lanes operator-(Lanes a, Lanes b) {
  return each_part([&](int i) { return _mm_sub_ps(a.v[i], b.v[i]); });
}
inline Lanes operator*(Lanes a, Lanes b) {
  return each_part([&](int i) { return _mm_mul_ps(a.v[i], b.v[i]); });
}
inline Lanes operator/(Lanes a, Lanes b) {
  return each_part([&](int i) { return _mm_div_ps(a.v[i], b.v[i]); });
}
// b where the two are equal or one is NaN, as the instruction has it
inline Lanes max(Lanes a, Lanes b) {
  return each_part([&](int i) { return _mm_max_ps(a.v[i], b.v[i]); });
}
inline Lanes min(Lanes a, Lanes b) {
  return each_part([&](int i) { return _mm_min_ps(a.v[i], b.v[i]); });
}
inline Lanes abs(Lanes a) {
  return each_part([&](int i) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), a.v[i]); });
}
inline Lanes round(Lanes a) {  // to the nearest integer, ties to even
  return each_part(
      [&](int i) { return _mm_round_ps(a.v[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); });
}
inline Lanes sqrt(Lanes a) {
  return each_part([&](int i) { return _mm_sqrt_ps(a.v[i]); });
}

// Two doubles a * b + c rounded to odd, so that rounding once more to float is rounding once.
inline __m128d fma_to_odd(__m128d a, __m128d b, __m128d c) {
  const __m128d p = _mm_mul_pd(a, b), s = _mm_add_pd(p, c);  // the product of two floats is exact
  const __m128d t = _mm_sub_pd(s, p);
  const __m128d error = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, t)), _mm_sub_pd(c, t));
  // An inexact even s moves one step towards the true sum: up in magnitude when error and s agree.
  const __m128i bits = _mm_castpd_si128(s), one = _mm_set1_epi64x(1);
  const __m128i inexact = _mm_castpd_si128(_mm_cmpneq_pd(error, _mm_setzero_pd()));
  const __m128i finite = _mm_castpd_si128(_mm_cmpord_pd(error, error));
  const __m128i even = _mm_andnot_si128(bits, one);
  const __m128i disagree = _mm_srli_epi64(_mm_xor_si128(bits, _mm_castpd_si128(error)), 63);
  const __m128i step = _mm_sub_epi64(one, _mm_add_epi64(disagree, disagree));
  const __m128i moves =
      _mm_and_si128(_mm_and_si128(inexact, finite), _mm_sub_epi64(_mm_setzero_si128(), even));
  return _mm_castsi128_pd(_mm_add_epi64(bits, _mm_and_si128(step, moves)));
}
inline __m128d low_doubles(__m128 v) { return _mm_cvtps_pd(v); }
inline __m128d high_doubles(__m128 v) { return _mm_cvtps_pd(_mm_movehl_ps(v, v)); }
inline __m128 to_floats(__m128d low, __m128d high) {
  return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
[[gnu::noinline]] inline Lanes fma_through_odd(Lanes a, Lanes b, Lanes c) {
  return each_part([&](int i) {
    return to_floats(fma_to_odd(low_doubles(a.v[i]), low_doubles(b.v[i]), low_doubles(c.v[i])),
                     fma_to_odd(high_doubles(a.v[i]), high_doubles(b.v[i]), high_doubles(c.v[i])));
  });
}
// a * b + c rounded once, on machines without the instruction too: every path gives the same bits.
// Rounding the sum to double first does harm only where that makes it the middle between two
// floats, which is rare: then the way is the long one. The middles between two normal floats end
// in the bits 1, 28 zeros; those around the subnormals lie elsewhere, so results up to the least
// normal are all suspect. (Zero is not: sums that small are exact in double.)
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  __m128i middles = _mm_setzero_si128(), least = _mm_set1_epi32(-1);
  const Lanes result = each_part([&](int i) {
    const __m128d low =
        _mm_add_pd(_mm_mul_pd(low_doubles(a.v[i]), low_doubles(b.v[i])), low_doubles(c.v[i]));
    const __m128d high =
        _mm_add_pd(_mm_mul_pd(high_doubles(a.v[i]), high_doubles(b.v[i])), high_doubles(c.v[i]));
    const __m128 rounded = to_floats(low, high);
    const __m128i ends = _mm_castps_si128(
        _mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), _MM_SHUFFLE(2, 0, 2, 0)));
    middles = _mm_or_si128(
        middles, _mm_cmpeq_epi32(_mm_slli_epi32(ends, 3), _mm_set1_epi32(int(0x80000000))));
    const __m128i bits = _mm_castps_si128(rounded), twice = _mm_add_epi32(bits, bits);  // no sign
    least = _mm_min_epu32(least, _mm_sub_epi32(twice, _mm_set1_epi32(1)));  // zero is the largest
    return rounded;
  });
  const __m128i normal = _mm_set1_epi32(2 << 23);  // twice the bits of the least normal float
  const __m128i suspect =
      _mm_or_si128(middles, _mm_cmpeq_epi32(_mm_min_epu32(least, normal), least));
  if (_mm_testz_si128(suspect, suspect)) [[likely]]
    return result;
  return fma_through_odd(a, b, c);
}
// a * 2^n for whole n in [-125, 128] and results that are not subnormal
inline Lanes times_power_of_two(Lanes a, Lanes n) {
  return each_part([&](int i) {
    const __m128i exponent = _mm_add_epi32(_mm_cvtps_epi32(n.v[i]), _mm_set1_epi32(126));
    const __m128 power = _mm_castsi128_ps(_mm_slli_epi32(exponent, 23));  // 2^(n-1): 2^128 is none
    return _mm_mul_ps(_mm_add_ps(a.v[i], a.v[i]), power);
  });
}

// Comparisons are false where a lane is NaN.
inline Mask less(Lanes a, Lanes b) {
  Mask m;
  for (int i = 0; i < 4; i++) m.v[i] = _mm_cmplt_ps(a.v[i], b.v[i]);
  return m;
}
inline Mask equal(Lanes a, Lanes b) {
  Mask m;
  for (int i = 0; i < 4; i++) m.v[i] = _mm_cmpeq_ps(a.v[i], b.v[i]);
  return m;
}
inline Mask first(int n) {  // lanes 0 .. n - 1
  Mask m;
  for (int i = 0; i < 4; i++)
    m.v[i] = _mm_castsi128_ps(_mm_cmplt_epi32(
        _mm_add_epi32(_mm_setr_epi32(0, 1, 2, 3), _mm_set1_epi32(4 * i)), _mm_set1_epi32(n)));
  return m;
}
inline uint32_t bits(Mask m) {  // bit i: lane i
  uint32_t all = 0;
  for (int i = 0; i < 4; i++) all |= uint32_t(_mm_movemask_ps(m.v[i])) << (4 * i);
  return all;
}
inline Lanes select(Mask m, Lanes yes, Lanes no) {
  return each_part([&](int i) { return _mm_blendv_ps(no.v[i], yes.v[i], m.v[i]); });
}

// Reductions add (or compare) lanes 8 apart, then 4, 2 and 1.
inline float reduce_add(Lanes a) {
  __m128 v = _mm_add_ps(_mm_add_ps(a.v[0], a.v[2]), _mm_add_ps(a.v[1], a.v[3]));
  v = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(v) + _mm_cvtss_f32(_mm_shuffle_ps(v, v, 1));
}
inline float reduce_max(Lanes a) {  // of lanes that are not NaN
  __m128 v = _mm_max_ps(_mm_max_ps(a.v[0], a.v[2]), _mm_max_ps(a.v[1], a.v[3]));
  v = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps(v, v, 1)));
}

// 16 values of the 16-bit formats; stores round to nearest even and keep NaN.
inline Lanes load_bf16(const void* p) {
  const auto* h = static_cast<const __m128i*>(p);
  return each_part([&](int i) {
    const __m128i v = _mm_loadu_si128(h + i / 2), none = _mm_setzero_si128();
    return _mm_castsi128_ps(i % 2 == 0 ? _mm_unpacklo_epi16(none, v) : _mm_unpackhi_epi16(none, v));
  });
}
inline __m128i round_to_bf16(__m128 a) {  // in the low halves
  const __m128i u = _mm_castps_si128(a), high = _mm_srli_epi32(u, 16);
  const __m128i odd = _mm_and_si128(high, _mm_set1_epi32(1));
  const __m128i up = _mm_add_epi32(u, _mm_add_epi32(odd, _mm_set1_epi32(0x7fff)));
  const __m128i nan = _mm_castps_si128(_mm_cmpunord_ps(a, a));
  return _mm_blendv_epi8(_mm_srli_epi32(up, 16), _mm_or_si128(high, _mm_set1_epi32(0x40)), nan);
}
inline void store_bf16(void* p, Lanes a) {
  auto* h = static_cast<__m128i*>(p);
  for (int i = 0; i < 2; i++)
    _mm_storeu_si128(h + i,
                     _mm_packus_epi32(round_to_bf16(a.v[2 * i]), round_to_bf16(a.v[2 * i + 1])));
}
inline __m128 widen_f16(__m128i h) {  // from the high halves
  const __m128i sign = _mm_and_si128(h, _mm_set1_epi32(int(0x80000000)));
  const __m128i magnitude = _mm_srli_epi32(_mm_xor_si128(h, sign), 3);  // the exponent in its place
  const __m128i normal = _mm_add_epi32(magnitude, _mm_set1_epi32(112 << 23));  // and of f32's bias
  const __m128i one = _mm_set1_epi32(113 << 23);  // the least normal: its place in a subnormal
  const __m128 subnormal =
      _mm_sub_ps(_mm_castsi128_ps(_mm_add_epi32(magnitude, one)), _mm_castsi128_ps(one));
  const __m128i small = _mm_cmplt_epi32(magnitude, _mm_set1_epi32(1 << 23));
  const __m128i infinite = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32((31 << 23) - 1));
  const __m128i top = _mm_and_si128(infinite, _mm_set1_epi32(255 << 23));
  const __m128 value = _mm_blendv_ps(_mm_castsi128_ps(normal), subnormal, _mm_castsi128_ps(small));
  return _mm_or_ps(value, _mm_castsi128_ps(_mm_or_si128(sign, top)));
}
inline Lanes load_f16(const void* p) {
  const auto* h = static_cast<const __m128i*>(p);
  return each_part([&](int i) {
    const __m128i v = _mm_loadu_si128(h + i / 2), none = _mm_setzero_si128();
    return widen_f16(i % 2 == 0 ? _mm_unpacklo_epi16(none, v) : _mm_unpackhi_epi16(none, v));
  });
}
inline void store_f16(void* p, Lanes a) {
  float f[16];
  uint16_t h[16];
  store(f, a);
  for (int i = 0; i < 16; i++) h[i] = f32_to_f16(f[i]);
  memcpy(p, h, sizeof h);
}

inline Pairs load_pairs(const void* p) {
  const auto* h = static_cast<const __m128i*>(p);
  Pairs w;
  for (int i = 0; i < 4; i++) {
    const __m128i v = _mm_loadu_si128(h + i);
    w.even.v[i] = _mm_castsi128_ps(_mm_slli_epi32(v, 16));
    w.odd.v[i] = _mm_castsi128_ps(_mm_and_si128(v, _mm_set1_epi32(int(0xffff0000))));
  }
  return w;
}
// sum + w.odd * x.odd + w.even * x.even, in this order: what vdpbf16ps does on Zen. A product of
// two bf16 is exact in f32, so multiplying and adding equals fma.
inline Lanes dot(Lanes sum, const Pairs& w, const Pairs& x) {
  return sum + w.odd * x.odd + w.even * x.even;
}

#include "runtime/backends/cpu/kernels/vec_math.inl"

}  // namespace hydrant::cpu::generic
