// The prompt's tokens that stay.
#include <climits>

#include "policies/registry.hpp"
#include "runtime/backends/cuda/kernels/kv.cuh"
#include "runtime/backends/cuda/kernels/store.hpp"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 256;

struct Selection {
  policy::RowPlan plan;
  int32_t length, stride, slots;
  const float *sum, *last;  // [kv_head, stride]; null: not scored
  float* score;             // [kv_head, slots]
  int32_t* position;
};

// The policy's score of positions of one KV head; zeros when the row is not scored.
struct Scores {
  policy::Id policy;
  const float *sum, *last;

  __device__ float at(int32_t position) const {
    if (!sum) return 0;
    return of(static_cast<const policy::All*>(nullptr), {sum[position], last[position]});
  }
  // In the order of the scores, as an integer; NaN somewhere at its ends.
  __device__ uint32_t ordered(int32_t position) const {
    const auto bits = uint32_t(__float_as_int(at(position)));
    return bits >> 31 ? ~bits : bits | 0x80000000u;
  }

 private:
  template <class... Policies>
  __device__ float of(const std::tuple<Policies...>*, policy::PromptColumn column) const {
    float score = 0;
    const auto try_policy = [&]<class P>(P) {
      if (policy == P::id) score = P::from_prompt(column);
    };
    (try_policy(Policies{}), ...);
    return score;
  }
};

// How many of the candidates [begin, end) have an order of at least `least`.
__device__ int32_t count_from(const Scores& scores, int32_t begin, int32_t end, uint64_t least) {
  int32_t count = 0;
  for (int32_t p = begin + int32_t(threadIdx.x); p < end; p += kThreads)
    count += scores.ordered(p) >= least;
  return block_join<kThreads>(count, Add{});
}

// The flags before this thread's in the block, and in all of it.
struct Rank {
  int32_t before, all;
};
__device__ Rank rank_in_block(bool flag) {
  SHARED(int32_t, warps, [kThreads / kWarp]);
  const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  const unsigned votes = __ballot_sync(kFullWarp, flag);
  __syncthreads();
  if (lane == 0) warps[warp] = __popc(votes);
  __syncthreads();
  Rank rank{__popc(votes & ((1u << lane) - 1)), 0};
  for (int w = 0; w < kThreads / kWarp; w++) {
    if (w < warp) rank.before += warps[w];
    rank.all += warps[w];
  }
  return rank;
}

// A block for each KV head. The heavy slots get the candidates of the highest scores, of equals the
// later ones, in ascending order of position: the threshold is found bit by bit, and one pass puts
// down who is above it.
__global__ void __launch_bounds__(kThreads, 2) select_kernel(Selection s) {
  const int64_t head = blockIdx.x;
  const policy::SlotLayout& slots = s.plan.slots;
  const Scores scores{s.plan.policy, s.sum ? s.sum + head * s.stride : nullptr,
                      s.sum ? s.last + head * s.stride : nullptr};
  const auto put = [&](int32_t slot, int32_t p) {
    s.position[head * s.slots + slot] = p;
    s.score[head * s.slots + slot] = scores.at(p);
  };
  const auto thread = int32_t(threadIdx.x);
  if (s.length <= slots.capacity()) {
    for (int32_t p = thread; p < s.length; p += kThreads) put(p, p);
    return;
  }
  for (int32_t p = thread; p < slots.sinks; p += kThreads) put(p, p);
  const int32_t begin = slots.sinks, end = s.length - slots.recent;
  for (int32_t p = end + thread; p < s.length; p += kThreads) put(slots.slot_of(p), p);
  if (slots.heavy == 0) return;

  uint64_t threshold = 0;  // the greatest order that at least `heavy` candidates reach
  for (int bit = 31; bit >= 0; bit--) {
    const uint64_t higher = threshold | uint64_t{1} << bit;
    if (count_from(scores, begin, end, higher) >= slots.heavy) threshold = higher;
  }
  const int32_t above = count_from(scores, begin, end, threshold + 1);
  const int32_t equals = count_from(scores, begin, end, threshold) - above;
  const int32_t skipped = equals - (slots.heavy - above);  // the earliest of the equals
  int32_t equals_before = 0, chosen_before = 0;
  for (int32_t first = begin; first < end; first += kThreads) {
    const int32_t p = first + thread;
    const uint64_t order = p < end ? scores.ordered(p) : 0;
    const bool equal = p < end && order == threshold;
    const Rank among_equals = rank_in_block(equal);
    const bool chosen =
        p < end && (order > threshold || (equal && equals_before + among_equals.before >= skipped));
    const Rank among_chosen = rank_in_block(chosen);
    if (chosen) put(slots.sinks + chosen_before + among_chosen.before, p);
    equals_before += among_equals.all;
    chosen_before += among_chosen.all;
  }
}

}  // namespace

cudaError_t select_prompt(cudaStream_t stream, const StorePromptArgs& a) {
  const PromptSegment& prompt = a.prompt;
  const int32_t place = prompt.segment.place;
  const policy::RowPlan& plan = a.to.plans[place];
  const Selection selection{plan,
                            prompt.length,
                            prompt.stats_stride,
                            a.to.slots,
                            plan.scored ? prompt.sum : nullptr,
                            plan.scored ? prompt.last : nullptr,
                            a.to.scores_of(place, 0),
                            a.to.positions_of(place, 0)};
  return launch(select_kernel, {dim3(unsigned(a.to.kv_heads)), dim3(kThreads), 0, stream},
                selection);
}

}  // namespace hydrant::cuda
