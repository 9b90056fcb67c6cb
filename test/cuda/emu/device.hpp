// The language of kernels for a plain C++ compiler: what nvcc knows by itself, on top of CUDA's own
// headers, so that types and signatures are the real ones. Stands in for nvcc in portable.cuh.
#pragma once
// CUDA's headers keep these as they find them, or have set them before.
#undef __global__
#undef __device__
#undef __host__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "test/cuda/emu/block.hpp"

#define threadIdx (::emu::current->index)
#define blockIdx (::emu::geometry->block_index)
#define blockDim (::emu::geometry->block)
#define gridDim (::emu::geometry->grid)

namespace emu {

// The place of the caller, as a default argument.
struct Here : Place {
  Here(const char* in = __builtin_FILE(), int at = __builtin_LINE()) : Place{in, at} {}
};

enum class Shuffle : unsigned char { index, exclusive_or, down, up };

template <class T>
T shuffle(unsigned mask, T value, int source, int width, Shuffle kind, Place place) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(Slot));
  const Exchange all = warp_exchange(mask, WarpOp::shuffle, &value, sizeof value, place);
  const int lane = int(current->linear % 32), base = lane & ~(width - 1);
  int from = lane;
  switch (kind) {
    case Shuffle::index:
      from = base + (source & (width - 1));
      break;
    case Shuffle::exclusive_or:
      if ((lane ^ source) < base + width) from = lane ^ source;
      break;
    case Shuffle::down:
      if (lane + source < base + width) from = lane + source;
      break;
    case Shuffle::up:
      if (lane - source >= base) from = lane - source;
      break;
  }
  if (!(all.arrived >> from & 1))
    fail(place, "a shuffle reads lane %d, which is not in the mask or has ended", from);
  T result;
  std::memcpy(&result, all.slots[from].bytes, sizeof result);
  return result;
}

// Atomics order nothing, as in CUDA.
template <class T, class Change>
T atomic_change(T* at, Change change) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  auto* const word = reinterpret_cast<Bits*>(at);
  Bits old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old,
                                      std::bit_cast<Bits>(T(change(std::bit_cast<T>(old)))), false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return std::bit_cast<T>(old);
}

}  // namespace emu

inline void __syncthreads(emu::Here here = {}) { emu::sync_block(here); }
inline void __syncwarp(unsigned mask = ~0u, emu::Here here = {}) {
  emu::warp_exchange(mask, emu::WarpOp::sync, nullptr, 0, here);
}
inline void __threadfence() { emu::fence(); }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, emu::Here here = {}) {
  return emu::shuffle(mask, value, lane, width, emu::Shuffle::index, here);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, emu::Here here = {}) {
  return emu::shuffle(mask, value, lanes, width, emu::Shuffle::exclusive_or, here);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, emu::Here here = {}) {
  return emu::shuffle(mask, value, int(by), width, emu::Shuffle::down, here);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, emu::Here here = {}) {
  return emu::shuffle(mask, value, int(by), width, emu::Shuffle::up, here);
}
inline unsigned __ballot_sync(unsigned mask, int vote, emu::Here here = {}) {
  const unsigned char yes = vote != 0;
  const emu::Exchange all = emu::warp_exchange(mask, emu::WarpOp::vote, &yes, 1, here);
  unsigned result = 0;
  for (int lane = 0; lane < 32; lane++)
    if ((all.arrived >> lane & 1) && all.slots[lane].bytes[0]) result |= 1u << lane;
  return result;
}

template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return emu::atomic_change(at, [value](T old) { return T(old + value); });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return emu::atomic_change(at, [value](T) { return value; });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return emu::atomic_change(at, [value](T old) { return T(old | value); });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return emu::atomic_change(at, [&](T old) { return old == expected ? value : old; });
}

template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcs(const T* at) {
  return *at;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 4; i++) sum += int(int8_t(a >> (8 * i))) * int(int8_t(b >> (8 * i)));
  return sum;
}
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
