// Places of keys for rows of Positions::cache.
#pragma once
#include "runtime/backends/cuda/kernels/kv.cuh"
#include "runtime/backends/cuda/kernels/report.cuh"

namespace hydrant::cuda {

inline constexpr int kRankThreads = 128;

// A block for some slots of a row's KV head: each thread counts the live slots that are older than
// its own. ranks [row of the launch, kv_head, slots].
static __global__ void __launch_bounds__(kRankThreads)
    rank_kernel(StepRows rows, Cache cache, int32_t* ranks, int64_t places, KernelFault* fault) {
  const StepRow& row = rows.at[blockIdx.z];
  if (row.plan.positions != policy::Positions::cache) return;
  const auto kv_head = int32_t(blockIdx.y);
  const int32_t slot = int32_t(blockIdx.x) * kRankThreads + int32_t(threadIdx.x);
  const int32_t live = row.plan.slots.live_rows(row.position);
  if (slot >= live) return;
  const int32_t* const positions = cache.positions_of(row.place, kv_head);
  int32_t rank = 0;
  for (int32_t other = 0; other < live; other++) rank += positions[other] < positions[slot];
  if (rank >= places) {
    report(fault, FaultKind::rank, slot, rank, places);
    rank = 0;
  }
  ranks[(int64_t{blockIdx.z} * cache.kv_heads + kv_head) * cache.slots + slot] = rank;
}

}  // namespace hydrant::cuda
