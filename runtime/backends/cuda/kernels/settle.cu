#include "runtime/backends/cuda/kernels/settle.hpp"

#include <tuple>

#include "policies/registry.hpp"
#include "policies/settle.hpp"
#include "runtime/backends/cuda/kernels/kv.cuh"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 128;

// Probabilities that the rows of a KV head received, summed over its query heads in their order.
struct Mass {
  const float *logits, *lse;  // [query head, stride], [query head]
  int64_t stride;
  int32_t query_heads;

  // Exactly 0 where f32 would be subnormal: what was never attended to must tie.
  static __device__ float probability(float logit) { return logit < -86.6f ? 0.0f : expf(logit); }
  __device__ float operator()(int32_t row) const {
    float sum = 0;
    for (int32_t g = 0; g < query_heads; g++) sum += probability(logits[g * stride + row] - lse[g]);
    return sum;
  }
};

struct Weaker {
  __device__ policy::Victim operator()(policy::Victim a, policy::Victim b) const {
    return policy::weaker(a, b);
  }
};

// policy::settle_lane of the policy with the plan's id.
template <class... Policies>
__device__ policy::Victim settle_lane(const std::tuple<Policies...>*, const policy::RowPlan& plan,
                                      int32_t position, const Mass& mass, float* score,
                                      const int32_t* positions) {
  policy::Victim victim;
  const auto try_policy = [&]<class P>(P) {
    if (plan.policy == P::id)
      victim = policy::settle_lane<P>(plan, position, int32_t(threadIdx.x), kThreads, mass, score,
                                      positions);
  };
  (try_policy(Policies{}), ...);
  return victim;
}

// A block for each row and KV head.
__global__ void __launch_bounds__(kThreads)
    settle_kernel(StepRows rows, Cache cache, const float* logits, const float* lse,
                  int32_t query_heads) {
  const StepRow& row = rows.at[blockIdx.x];
  const auto kv_head = int32_t(blockIdx.y);
  int32_t* const victim = cache.victim + cache.head_index(row.place, kv_head);
  if (!row.plan.scored) {
    const policy::SlotLayout& slots = row.plan.slots;
    if (threadIdx.x == 0)
      *victim = slots.evicts_at(row.position) ? slots.leaving_of(row.position) : -1;
    return;
  }
  const int64_t query = (int64_t{row.token} * cache.kv_heads + kv_head) * query_heads;
  const Mass mass{logits + query * cache.slots, lse + query, cache.slots, query_heads};
  const policy::Victim mine =
      settle_lane(static_cast<const policy::All*>(nullptr), row.plan, row.position, mass,
                  cache.scores_of(row.place, kv_head), cache.positions_of(row.place, kv_head));
  const policy::Victim weakest = block_join<kThreads>(mine, Weaker{});
  if (threadIdx.x == 0) *victim = weakest.row;
}

}  // namespace

cudaError_t settle(cudaStream_t stream, const SettleArgs& a) {
  return each_rows(a.segments, a.cache.plans, [&](const StepRows& rows, unsigned count) {
    return launch(
        settle_kernel, {dim3(count, unsigned(a.shape.kv_heads)), dim3(kThreads), 0, stream}, rows,
        Cache(a.cache), a.logits.as<float>(), a.lse.as<float>(), a.shape.heads / a.shape.kv_heads);
  });
}

}  // namespace hydrant::cuda
