// Sums and the like over the lanes of a warp and the warps of a block.
#pragma once
#include <cstring>

#include "runtime/backends/cuda/portable.cuh"

namespace hydrant::cuda {

inline constexpr unsigned kFullWarp = 0xffffffffu;
inline constexpr int kWarp = 32;

// The value of the lane whose number differs in the bits `lanes`; of any type made of 32-bit words.
template <class T>
__device__ T exchange(T value, int lanes) {
  static_assert(sizeof(T) % sizeof(int) == 0);
  constexpr int kWords = int(sizeof(T) / sizeof(int));
  int words[kWords];
  memcpy(words, &value, sizeof value);
  for (int& word : words) word = __shfl_xor_sync(kFullWarp, word, lanes);
  memcpy(&value, words, sizeof value);
  return value;
}

// join(a, b) of all lanes, in every lane. Which of the two is whose must not matter: then all lanes
// have the same bits.
template <class T, class Join>
__device__ T warp_join(T value, const Join& join) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value = join(value, exchange(value, lanes));
  return value;
}

// The sums of kCount values, a power of two, over the warp; lane l is left with the one of value
// l / (32 / kCount). Halves of the warp part the values among them as long as there are several, so
// that kCount sums take little more than one does, and have the bits of warp_join's.
template <int kCount>
__device__ float warp_sums(float (&value)[kCount], int lane) {
  int lanes = kWarp / 2;
  for (int held = kCount / 2; held > 0; held /= 2, lanes /= 2)
    for (int i = 0; i < held; i++) {
      const bool upper = (lane & lanes) != 0;
      const float own = upper ? value[held + i] : value[i];
      value[i] = own + exchange(upper ? value[i] : value[held + i], lanes);
    }
  for (; lanes > 0; lanes /= 2) value[0] += exchange(value[0], lanes);
  return value[0];
}

// warp_join over a block of kThreads, a multiple of 32; a barrier at its beginning and one within.
template <int kThreads, class T, class Join>
__device__ T block_join(T value, const Join& join) {
  static_assert(kThreads % kWarp == 0 && kThreads / kWarp <= kWarp);
  SHARED(T, parts, [kThreads / kWarp]);
  const int thread = int(threadIdx.x);
  value = warp_join(value, join);
  __syncthreads();  // a block may join several times
  if (thread % kWarp == 0) parts[thread / kWarp] = value;
  __syncthreads();
  T all = parts[0];
  for (int warp = 1; warp < kThreads / kWarp; warp++) all = join(all, parts[warp]);
  return all;
}

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
// A NaN loses against a number.
struct Most {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

}  // namespace hydrant::cuda
