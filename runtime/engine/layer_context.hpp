// What the parts of a layer's computation share.
#pragma once
#include <vector>

#include "runtime/engine/cancellation.hpp"
#include "runtime/engine/feed.hpp"
#include "runtime/engine/step.hpp"
#include "runtime/engine/step_memory.hpp"
#include "runtime/model/spec.hpp"

namespace hydrant {

// Host seconds spent on pieces of a step; on an inline stream the device's as well.
struct StepSeconds {
  double prefill = 0, decode = 0;
};

// Who attends, and in which memory. Both sides do the same.
struct AttentionSide {
  Ops& ops;
  Stream& stream;
  const AttentionMemory& memory;
  HostLane* lane = nullptr;  // of Side::host; null: this is the compute lane
};

struct LayerContext {
  const ModelSpec& spec;
  Ops& ops;
  Stream& stream;  // the compute lane
  WeightFeed& weights;
  CacheFeed& caches;
  HiddenFeed& hidden;
  const StepMemory& memory;
  const AttentionSide& device_side;
  const AttentionSide* host_side;  // null: no row is attended there
  const Step& step;
  // [layer]: what its operations have been given in this step. Host memory that must stay until the
  // step is over; room for any step is reserved, so spans into it hold.
  std::vector<std::vector<PromptSegment>>& prompts;
  StepSeconds& seconds;
  Cancellation& cancellation;
};

}  // namespace hydrant
