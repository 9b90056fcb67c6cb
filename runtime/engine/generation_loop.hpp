// The loop over (step, stage, group): the only one, whatever stays where.
#pragma once
#include <span>
#include <vector>

#include "runtime/engine/batch.hpp"
#include "runtime/engine/feed.hpp"
#include "runtime/engine/layer_context.hpp"
#include "runtime/engine/sampler.hpp"
#include "runtime/engine/step_memory.hpp"
#include "runtime/kv/kv_cache.hpp"

namespace hydrant {

// The most that any step of the job has.
HiddenShape hidden_shape(const ModelSpec& spec, const JobLimits& limits);

// What the loop works with; all of it outlives the loop. Feeds move weights and caches on lanes of
// their own.
struct LoopParts {
  Ops& ops;
  const ModelSpec& spec;
  WeightFeed& weights;
  CacheFeed& caches;
  HiddenFeed& hidden;
  KvCache& cache;
  const StepMemory& memory;
  Stream& compute;
  const AttentionSide* host_side = nullptr;  // null: no row is attended on the host
};

// In each step every row in flight gets one token: rows just admitted by their whole prompt, the
// others by their latest token. Stage by stage, and in a stage group by group, so that a stage's
// weights come once for all groups. The host waits for a group's logits, chooses, and ends rows; at
// the border of two steps their places go to the next rows. A cancelled run ends between two pieces
// of a layer: what of the step had been done is lost, and the caches are not fit for another.
class GenerationLoop {
 public:
  GenerationLoop(const LoopParts& parts, const JobLimits& limits);
  RunFigures run(std::span<const Request> rows, const BatchShape& shape, const Listener& listener);
  bool ended_within_step() const { return broken_; }

 private:
  void prepare(const AttentionSide& side);
  void begin_step();
  WorkPart part_of(int stage) const;
  void prefetch_cache_after(int stage, size_t active);
  void run_step(Batch& batch, const Listener& listener, Cancellation& cancellation);
  void choose(Batch& batch, const GroupStep& group, const Listener& listener);
  void choose(LiveRow& row, const RowLogits& logits, const Listener& listener);
  void end_row(LiveRow& row, Finish how, const Listener& listener);
  void cancel(Batch& batch, size_t rows, const Listener& listener);

  LoopParts parts_;
  const JobLimits& limits_;
  AttentionSide device_side_;
  Step step_;
  std::vector<std::vector<PromptSegment>> prompts_;  // [layer]
  std::vector<ActiveGroup> active_;
  std::vector<PieceTokens> pieces_;
  Sampler sampler_;
  RunFigures figures_;
  bool broken_ = false;
};

}  // namespace hydrant
