// Places of keys for rows of Positions::cache.
#pragma once
#include "runtime/backends/cuda/kernels/kv.cuh"
#include "runtime/backends/cuda/kernels/report.cuh"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {

inline constexpr int kRankThreads = 256;
inline constexpr int kRankWords = 1024;  // of 32 positions, at a time

// The sum of value over the threads before this one, and over all of the block.
__device__ inline int2 sums_before(int value) {
  SHARED(int, warps, [kRankThreads / kWarp]);
  const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  int sum = value;
  for (int by = 1; by < kWarp; by *= 2) {
    const int lower = __shfl_up_sync(kFullWarp, sum, unsigned(by));
    if (lane >= by) sum += lower;
  }
  if (lane == kWarp - 1) warps[warp] = sum;
  __syncthreads();
  int2 all{sum - value, 0};
  for (int w = 0; w < kRankThreads / kWarp; w++) {
    if (w < warp) all.x += warps[w];
    all.y += warps[w];
  }
  return all;
}

// A block for a row's KV head: a bit for each position that a live slot holds, and how many are set
// before each word; time grows with the slots and with a 32nd of the positions. ranks [row of the
// launch, kv_head, slots].
static __global__ void __launch_bounds__(kRankThreads)
    rank_kernel(StepRows rows, Cache cache, int32_t* ranks, int64_t places, KernelFault* fault) {
  const StepRow& row = rows.at[blockIdx.y];
  if (row.plan.positions != policy::Positions::cache) return;
  constexpr int kWords = kRankWords / kRankThreads;  // of a thread
  constexpr int32_t kWindow = kRankWords * 32;
  const auto kv_head = int32_t(blockIdx.x), thread = int32_t(threadIdx.x);
  const int32_t live = row.plan.slots.live_rows(row.position);
  const int32_t* const positions = cache.positions_of(row.place, kv_head);
  ranks += (int64_t{blockIdx.y} * cache.kv_heads + kv_head) * cache.slots;
  SHARED(unsigned, bits, [kRankWords]);
  SHARED(int32_t, before, [kRankWords]);
  for (int32_t slot = thread; slot < live; slot += kRankThreads) {
    const int32_t position = positions[slot];
    if (position >= 0 && position <= row.position) continue;
    report(fault, FaultKind::position, slot, position, row.position);
    ranks[slot] = 0;
  }
  int32_t older = 0;  // live slots of the windows before
  for (int64_t first = 0; first <= row.position; first += kWindow) {
    const auto inside = [&](int32_t position) {
      return position >= first && position < first + kWindow && position <= row.position;
    };
    for (int w = thread; w < kRankWords; w += kRankThreads) bits[w] = 0;
    __syncthreads();
    for (int32_t slot = thread; slot < live; slot += kRankThreads) {
      const int32_t at = positions[slot];
      if (inside(at)) atomicOr(&bits[(at - first) / 32], 1u << (at % 32));
    }
    __syncthreads();
    int own = 0;
    for (int w = 0; w < kWords; w++) own += __popc(bits[thread * kWords + w]);
    const int2 sums = sums_before(own);
    int32_t count = older + sums.x;
    for (int w = 0; w < kWords; w++) {
      before[thread * kWords + w] = count;
      count += __popc(bits[thread * kWords + w]);
    }
    older += sums.y;
    __syncthreads();
    for (int32_t slot = thread; slot < live; slot += kRankThreads) {
      const int32_t at = positions[slot];
      if (!inside(at)) continue;
      const auto word = size_t(at - first) / 32;
      int32_t rank = before[word] + __popc(bits[word] & ((1u << (at % 32)) - 1));
      if (rank >= places) {
        report(fault, FaultKind::rank, slot, rank, places);
        rank = 0;
      }
      ranks[slot] = rank;
    }
    __syncthreads();
  }
  if (thread == 0 && older != live) report(fault, FaultKind::positions, 0, older, live);
}

}  // namespace hydrant::cuda
