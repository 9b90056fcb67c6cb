// The AVX-512 lanes, with pairs of bf16 multiplied by the instruction made for them.
#pragma once
#include "runtime/backends/cpu/kernels/vec_avx512.hpp"

#include "runtime/backends/cpu/kernels/begin_avx512_bf16.inc"
namespace hydrant::cpu::avx512_bf16 {

using namespace avx512;  // what is declared below hides its namesake there

struct Pairs {
  __m512i v;
};
struct Pair {
  uint32_t both;  // even element in the low half
};

inline Pair make_pair(float even, float odd) {
  return {uint32_t{f32_to_bf16(even)} | uint32_t{f32_to_bf16(odd)} << 16};
}
// Unlike store_bf16 it makes subnormals zero, which is what dot() would take them for.
inline void store_pairs(Pair* to, Lanes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), __m256i(_mm512_cvtneps_pbh(a.v)));
}
inline Pairs load_pairs(const void* p) { return {_mm512_loadu_si512(p)}; }
using avx512::broadcast;
inline Pairs broadcast(Pair x) { return {_mm512_set1_epi32(int(x.both))}; }
inline Lanes dot(Lanes sum, const Pairs& w, const Pairs& x) {
  return {_mm512_dpbf16_ps(sum.v, __m512bh(w.v), __m512bh(x.v))};
}

}  // namespace hydrant::cpu::avx512_bf16
#include "runtime/backends/cpu/kernels/end.inc"
