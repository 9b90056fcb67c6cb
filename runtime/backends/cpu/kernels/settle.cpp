#include "runtime/backends/cpu/kernels/settle.hpp"

#include <algorithm>

#include "policies/registry.hpp"
#include "policies/settle.hpp"
#include "runtime/backends/cpu/kernels/fork.hpp"
#include "runtime/backends/cpu/kernels/settle_paths.hpp"

namespace hydrant::cpu {
namespace {

SumMass sum_mass_of(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return generic::sum_mass;
    case Isa::avx2:
      return avx2::sum_mass;
    case Isa::avx512:
    case Isa::avx512_bf16:
    case Isa::amx:
      return avx512::sum_mass;
  }
  return generic::sum_mass;
}

// policy::settle_lane with one lane, its rows scored in strips that stay in the first-level cache.
template <class Policy>
policy::Victim settle_head(SumMass sum_mass, const HeadLogits& head, const policy::RowPlan& plan,
                           int32_t position, float* score, const int32_t* positions) {
  constexpr int32_t kStrip = 256;
  float mass[kStrip];
  const int32_t live = plan.slots.live_rows(position);
  for (int32_t begin = 0; begin < live; begin += kStrip) {
    const int32_t end = std::min(begin + kStrip, live);
    sum_mass(head, begin, end - begin, mass);
    policy::observe<Policy>(
        plan.slots, position, {begin, end, 1}, [&](int32_t row) { return mass[row - begin]; },
        score);
  }
  if (!plan.slots.evicts_at(position)) return {};
  return policy::weakest<Policy>(plan.slots, position, 0, 1, score, positions);
}

}  // namespace

void settle(ThreadPool& pool, Isa isa, const SettleArgs& args) {
  const SumMass sum_mass = sum_mass_of(isa);
  const CacheView& cache = args.cache;
  const int32_t kv_heads = args.shape.kv_heads, group = args.shape.heads / kv_heads;
  const auto settle_one = [&](const Segment& segment, int32_t kv_head) {
    const policy::RowPlan& plan = cache.plans[segment.place];
    int32_t* const victim = cache.victim + cache.head_index(segment.place, kv_head);
    if (!plan.scored) {
      const bool evicts = plan.slots.evicts_at(segment.first);
      *victim = evicts ? plan.slots.leaving_of(segment.first) : -1;
      return;
    }
    const size_t query =
        size_t(segment.token) * size_t(args.shape.heads) + size_t(kv_head) * size_t(group);
    const size_t stride = size_t(cache.slots);
    const HeadLogits head{args.logits.as<float>() + query * stride, args.lse.as<float>() + query,
                          stride, group};
    policy::visit(plan.policy, [&]<class Policy>(Policy) {
      *victim = settle_head<Policy>(sum_mass, head, plan, segment.first,
                                    cache.scores_of(segment.place, kv_head),
                                    cache.positions_of(segment.place, kv_head))
                    .row;
    });
  };
  const int64_t items = int64_t(args.segments.size()) * kv_heads;
  split_large(pool, items, items * group * cache.slots, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++)
      settle_one(args.segments[size_t(i / kv_heads)], int32_t(i % kv_heads));
  });
}

}  // namespace hydrant::cpu
