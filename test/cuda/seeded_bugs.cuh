// Kernels with one seeded mistake each (wrong = true) and their correct twins: what the emulator
// must notice, and what it must not complain of. Each writes to out what its case in
// seeded_bugs_test.cpp expects.
#pragma once
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::test {

using cuda::kFullWarp;

struct Memory {
  const float* in;  // 4096 numbers
  float* out;       // 4096 zeros
  int32_t* counter;
};

inline __device__ float sum_of_warp(float value) { return cuda::warp_join(value, cuda::Add{}); }

// Tiles of a 64 x 64 product are overwritten before all have read them.
template <bool wrong>
__global__ void tile_overwritten(Memory m) {
  SHARED(float, a, [16][17]);
  SHARED(float, b, [16][17]);
  const int x = int(threadIdx.x), y = int(threadIdx.y);
  const int row = int(blockIdx.y) * 16 + y, column = int(blockIdx.x) * 16 + x;
  float sum = 0;
  for (int k = 0; k < 64; k += 16) {
    a[y][x] = m.in[row * 64 + k + x];
    b[y][x] = m.in[(k + y) * 64 + column];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += a[y][i] * b[i][x];
    if (!wrong) __syncthreads();
  }
  m.out[row * 64 + column] = sum;
}

// One thread reads what warps have left, without waiting for them.
template <bool wrong, int reader>
__global__ void read_too_early(Memory m) {
  SHARED(float, parts, [8]);
  const int thread = int(threadIdx.x);
  const float sum = sum_of_warp(m.in[thread]);
  if (thread % 32 == 0) parts[thread / 32] = sum;
  if (!wrong) __syncthreads();
  if (thread != reader) return;
  float all = 0;
  for (int i = 0; i < 8; i++) all += parts[i];
  m.out[0] = all;
}
template <bool wrong>
__global__ void first_reads_too_early(Memory m) {
  read_too_early<wrong, 0>(m);
}
template <bool wrong>
__global__ void last_reads_too_early(Memory m) {
  read_too_early<wrong, 255>(m);
}

template <bool wrong>
__global__ void counted_without_atomics(Memory m) {
  SHARED(int32_t, count, [1]);
  if (threadIdx.x == 0) count[0] = 0;
  __syncthreads();
  if (wrong)
    count[0] += 1;
  else
    atomicAdd(&count[0], 1);
  __syncthreads();
  if (threadIdx.x == 0) m.out[0] = float(count[0]);
}

// Lanes are taken to run in step.
template <bool wrong>
__global__ void lock_step(Memory m) {
  SHARED(float, values, [64]);
  values[threadIdx.x] = m.in[threadIdx.x];
  if (!wrong) __syncwarp();
  m.out[threadIdx.x] = values[threadIdx.x ^ 1];
}

template <bool wrong>
__global__ void blocks_add_without_atomics(Memory m) {
  if (threadIdx.x != 5) return;
  if (wrong)
    m.out[0] += 1;
  else
    atomicAdd(&m.out[0], 1.0f);
}

// The last block adds up what the others have left; without a fence it may not see it.
template <bool wrong>
__global__ void last_block_without_fence(Memory m) {
  SHARED(bool, last, [1]);
  const float sum = sum_of_warp(m.in[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) {
    m.out[1 + blockIdx.x] = sum;
    if (!wrong) __threadfence();
    last[0] = atomicAdd(m.counter, 1) == int32_t(gridDim.x) - 1;
  }
  __syncthreads();
  if (!last[0] || threadIdx.x != 0) return;
  __threadfence();
  float all = 0;
  for (unsigned block = 0; block < gridDim.x; block++) all += m.out[1 + block];
  m.out[0] = all;
}

template <bool wrong>
__global__ void barrier_in_a_branch(Memory m) {
  if (wrong && threadIdx.x < 16) __syncthreads();
  __syncthreads();
  m.out[threadIdx.x] = 1;
}

template <bool wrong>
__global__ void shuffle_in_a_branch(Memory m) {
  float value = 1;
  if (!wrong || threadIdx.x < 20) value = __shfl_xor_sync(kFullWarp, value, 1);
  __syncthreads();
  m.out[threadIdx.x] = value;
}

template <bool wrong>
__global__ void ends_before_a_barrier(Memory m) {
  if (wrong && threadIdx.x > 20) return;
  __syncthreads();
  m.out[threadIdx.x] = 1;
}

template <bool wrong>
__global__ void shared_memory_not_set(Memory m) {
  SHARED(float, values, [32]);
  if (!wrong || threadIdx.x != 3) values[threadIdx.x] = 1;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 32; i++) sum += values[i];
  m.out[threadIdx.x] = sum / 32;
}

template <bool wrong>
__global__ void behind_a_shared_array(Memory m) {
  SHARED(float, values, [32]);
  float* const at = values;
  at[threadIdx.x + (wrong && threadIdx.x == 31)] = 1;
  __syncthreads();
  m.out[threadIdx.x] = values[0];
}

template <bool wrong>
__global__ void behind_dynamic_shared_memory(Memory m) {
  DYN_SHARED(float, values);
  values[threadIdx.x + (wrong && threadIdx.x == 31)] = 1;
  __syncthreads();
  m.out[threadIdx.x] = values[0];
}

template <bool wrong>
__global__ void behind_global_memory(Memory m) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 4096 + (wrong ? 1 : 0)) m.out[i] = 1;
}

}  // namespace hydrant::test
