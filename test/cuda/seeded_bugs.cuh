// Kernels with one seeded mistake each (wrong = true) and their correct twins: what the emulator
// must notice, and what it must not complain of. Each writes to out what its case in
// seeded_bugs_test.cpp expects.
#pragma once
#include "runtime/backends/cuda/mma.cuh"
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

// A 16 x 16 product of f16 on tensor cores; copies are used before they have arrived.
template <bool wrong>
__global__ void copy_not_waited_for(Memory m) {
  SHARED(__half, a, [16][24]);
  SHARED(__half, b, [16][24]);
  SHARED(float, raw, [2][256]);
  const int lane = int(threadIdx.x);
  for (int i = lane * 4; i < 512; i += 128) cuda::copy16(&raw[i / 256][i % 256], m.in + i);
  cuda::end_copies();
  if (!wrong) cuda::wait_for_copies<0>();
  __syncwarp();
  for (int i = lane; i < 256; i += 32) {
    a[i / 16][i % 16] = __float2half_rn(raw[0][i]);
    b[i / 16][i % 16] = __float2half_rn(raw[1][i]);
  }
  if (wrong) cuda::wait_for_copies<0>();
  __syncwarp();
  cuda::MatrixB rows[2], columns[2];  // A is loaded as two B's: words 0-1 and 2-3
  cuda::load_squares<false>(rows, &a[lane % 16][lane / 16 * 8]);
  cuda::load_squares<true>(columns, &b[lane % 16][lane / 16 * 8]);
  const cuda::MatrixA left{
      {rows[0].words[0], rows[0].words[1], rows[1].words[0], rows[1].words[1]}};
  for (int half = 0; half < 2; half++) {
    cuda::MatrixC sum{};
    cuda::multiply_add<__half>(sum, left, columns[half]);
    for (int i = 0; i < 4; i++)
      m.out[(lane / 4 + i / 2 * 8) * 16 + half * 8 + lane % 4 * 2 + i % 2] = sum.at[i];
  }
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
