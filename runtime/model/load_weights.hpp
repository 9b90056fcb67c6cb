// From a checkpoint to panels on a device.
#pragma once
#include <utility>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/panel_reader.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/model/weight_plan.hpp"
#include "runtime/model/weights.hpp"

namespace hydrant {

// A model's weights in one allocation; immutable.
class ModelWeights {
 public:
  ModelWeights(Buffer memory, std::vector<LayerWeights> stages)
      : memory_(std::move(memory)), stages_(std::move(stages)) {}
  const LayerWeights& stage(int index) const { return stages_.at(size_t(index)); }
  size_t bytes() const { return memory_.bytes(); }

 private:
  Buffer memory_;
  std::vector<LayerWeights> stages_;
};

// Reads, checks and packs, on as many threads as the device has; beside the allocation it needs a
// few MiB. A value that is not finite is refused naming file, tensor and row.
ModelWeights load_weights(const Checkpoint& checkpoint, const ModelSpec& spec,
                          const WeightPlan& plan, Device& device,
                          const LoadProgress& progress = {});

}  // namespace hydrant
