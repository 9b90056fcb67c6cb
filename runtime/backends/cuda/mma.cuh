// Tensor cores, and copies to shared memory that go on beside the kernel: the only place with
// inline PTX, each piece with a body for the emulator. All 32 lanes of a warp call together.
#pragma once
#include <cstdint>

#include "runtime/backends/cuda/portable.cuh"

#if !defined(__CUDACC__)
#include <emu/matrix.hpp>  // test/cuda
#endif

namespace hydrant::cuda {

// A warp's share of small matrices as PTX lays them out, two elements of 16 bits in a word. With
// g = lane / 4 and t = lane % 4 * 2:
//   A, 16 x 16   words 0-3: columns t, t + 1 of rows g and g + 8, then columns t + 8, t + 9 of them
//   B, 16 x 8    words 0-1: of column g rows t, t + 1, then t + 8, t + 9
//   C, 16 x 8    columns t, t + 1 of row g, then of row g + 8
struct MatrixA {
  uint32_t words[4];
};
struct MatrixB {
  uint32_t words[2];
};
struct MatrixC {
  float at[4];
};
// int8 elements, four in a word, of 32 columns of A. With q = lane % 4 * 4:
//   A, 16 x 32   words 0, 1: columns q to q + 3 of rows g and g + 8; words 2, 3: q + 16 to q + 19
//   B, 32 x 8    word 0: of column g rows q to q + 3; word 1: q + 16 to q + 19
//   sums         as C
struct MatrixInt {
  int at[4];
};

#if defined(__CUDACC__)

// sum += a . b, products of __half or __nv_bfloat16 exact, sums f32.
template <class T>
__device__ void multiply_add(MatrixC& sum, const MatrixA& a, const MatrixB& b);

template <>
__device__ inline void multiply_add<__half>(MatrixC& sum, const MatrixA& a, const MatrixB& b) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum.at[0]), "+f"(sum.at[1]), "+f"(sum.at[2]), "+f"(sum.at[3])
      : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]),
        "r"(b.words[1]));
#else  // Turing takes eight columns of A at once
  for (int half = 0; half < 2; half++)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(sum.at[0]), "+f"(sum.at[1]), "+f"(sum.at[2]), "+f"(sum.at[3])
        : "r"(a.words[2 * half]), "r"(a.words[2 * half + 1]), "r"(b.words[half]));
#endif
}

template <>
__device__ inline void multiply_add<__nv_bfloat16>(MatrixC& sum, const MatrixA& a,
                                                   const MatrixB& b) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum.at[0]), "+f"(sum.at[1]), "+f"(sum.at[2]), "+f"(sum.at[3])
      : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]),
        "r"(b.words[1]));
#else
  __trap();  // no such instruction: launchers ask the card before they come here
#endif
}

// from + a . b over 16 columns of int8, exact: a half of A, and one of B.
__device__ inline MatrixInt dot16_int8(uint32_t upper, uint32_t lower, uint32_t b,
                                       const MatrixInt& from) {
  MatrixInt to;
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
      : "=r"(to.at[0]), "=r"(to.at[1]), "=r"(to.at[2]), "=r"(to.at[3])
      : "r"(upper), "r"(lower), "r"(b), "r"(from.at[0]), "r"(from.at[1]), "r"(from.at[2]),
        "r"(from.at[3]));
#else  // Turing takes eight rows at once
  for (int half = 0; half < 2; half++)
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%4,%5};"
        : "=r"(to.at[2 * half]), "=r"(to.at[2 * half + 1])
        : "r"(half ? lower : upper), "r"(b), "r"(from.at[2 * half]), "r"(from.at[2 * half + 1]));
#endif
  return to;
}
// start + a . b, of all 32 columns.
__device__ inline MatrixInt dot_int8(const MatrixA& a, const MatrixB& b, int start) {
  const MatrixInt from{{start, start, start, start}};
#if __CUDA_ARCH__ >= 800
  MatrixInt to;
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=r"(to.at[0]), "=r"(to.at[1]), "=r"(to.at[2]), "=r"(to.at[3])
      : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]),
        "r"(b.words[1]), "r"(from.at[0]), "r"(from.at[1]), "r"(from.at[2]), "r"(from.at[3]));
  return to;
#else
  return dot16_int8(a.words[2], a.words[3], b.words[1],
                    dot16_int8(a.words[0], a.words[1], b.words[0], from));
#endif
}

// Two B's out of 16 x 16 elements in shared memory: `row` is the lane's, of 8 elements, aligned to
// 16 bytes. Lanes 0-7 hold the rows of one square of 8 x 8, lanes 8-15 those of the next, ...; each
// square becomes a word, in which the lane finds the elements 2 * (lane % 4) and the next of row
// lane / 4; transposed: of column lane / 4.
template <bool transposed>
__device__ void load_squares(MatrixB (&to)[2], const void* row) {
  const auto at = unsigned(__cvta_generic_to_shared(row));
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0].words[0]), "=r"(to[0].words[1]), "=r"(to[1].words[0]),
                   "=r"(to[1].words[1])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0].words[0]), "=r"(to[0].words[1]), "=r"(to[1].words[0]),
                   "=r"(to[1].words[1])
                 : "r"(at)
                 : "memory");
}

// 16 bytes to shared memory, there for this thread after the wait. Turing copies at once.
__device__ inline void copy16(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(unsigned(__cvta_generic_to_shared(to))),
      "l"(from)
      : "memory");
#else
  *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
#endif
}
// Ends a group of copies.
__device__ inline void end_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits for all groups but the latest kGroups.
template <int kGroups>
__device__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

#else

template <class T>
void multiply_add(MatrixC& sum, const MatrixA& a, const MatrixB& b, emu::Here here = {}) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  emu::multiply_add(sum.at, a.words, b.words, std::is_same_v<T, __half>, here);
}

inline MatrixInt dot16_int8(uint32_t upper, uint32_t lower, uint32_t b, MatrixInt from,
                            emu::Here here = {}) {
  emu::add_dot16(from.at, upper, lower, b, here);
  return from;
}
inline MatrixInt dot_int8(const MatrixA& a, const MatrixB& b, int start, emu::Here here = {}) {
  const MatrixInt upper =
      dot16_int8(a.words[0], a.words[1], b.words[0], {{start, start, start, start}}, here);
  return dot16_int8(a.words[2], a.words[3], b.words[1], upper, here);
}

template <bool transposed>
void load_squares(MatrixB (&to)[2], const void* row, emu::Here here = {}) {
  uint32_t words[4];
  emu::load_squares(words, row, transposed, here);
  to[0] = {{words[0], words[1]}}, to[1] = {{words[2], words[3]}};
}

// Nothing arrives before the wait: a missing one shows.
inline void copy16(void* to, const void* from, emu::Here here = {}) {
  emu::copy_later(to, from, here);
}
inline void end_copies() { emu::end_copies(); }
template <int kGroups>
void wait_for_copies() {
  for (emu::Copy copy; emu::take_copy(copy, kGroups);)
    *static_cast<uint4*>(copy.to) = *static_cast<const uint4*>(copy.from);
}

#endif

}  // namespace hydrant::cuda
