// What the parts of a layer's computation share.
#pragma once
#include <vector>

#include "runtime/engine/feed.hpp"
#include "runtime/engine/step.hpp"
#include "runtime/engine/step_memory.hpp"
#include "runtime/model/spec.hpp"

namespace hydrant {

// Segments that operations of one layer were given: host memory that stays until the step is over.
// Room for a whole step is reserved, so that spans into it hold.
struct LayerSegments {
  std::vector<Segment> settling, evicting;  // rows that decode
  std::vector<PromptSegment> prompts;
};

// Host seconds spent on pieces of a step; on an inline stream the device's as well.
struct StepSeconds {
  double prefill = 0, decode = 0;
};

struct LayerContext {
  const ModelSpec& spec;
  Ops& ops;
  Stream& stream;  // the compute lane
  CacheFeed& caches;
  const StepMemory& memory;
  const Step& step;
  std::vector<LayerSegments>& segments;  // [layer]
  StepSeconds& seconds;
};

}  // namespace hydrant
