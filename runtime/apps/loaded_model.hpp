// A model's weights where the plan of a run has them.
#pragma once
#include <memory>
#include <optional>

#include "offload/offloaded_caches.hpp"
#include "offload/weight_prefetcher.hpp"
#include "runtime/apps/run_plan.hpp"
#include "runtime/engine/resident_feed.hpp"
#include "runtime/model/load_weights.hpp"

namespace hydrant {

// The model and the device must outlive it.
class LoadedModel {
 public:
  // Reads what is at home in memory. Throws as load_weights.
  LoadedModel(const Model& model, Device& device, RunPlan plan, bool quiet);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  Generator generator(BatchShape shape, DType kv_dtype);
  const RunPlan& plan() const { return plan_; }
  const WeightPlan& weights() const { return plan_.weights; }
  double load_seconds() const { return load_seconds_; }
  WeightPrefetcher* prefetcher() { return streamed_.get(); }  // null: no weight moves
  OffloadedCaches* caches() { return caches_.get(); }         // null: all are on the device
  OffloadedHidden* hidden() { return hidden_.get(); }         // the same

 private:
  const Model& model_;
  Device& device_;
  RunPlan plan_;
  double load_seconds_ = 0;
  // One of the two.
  std::optional<ModelWeights> resident_;
  std::unique_ptr<ResidentWeights> resident_feed_;
  std::unique_ptr<WeightPrefetcher> streamed_;
  std::unique_ptr<Device> host_;  // null: no second device attends
  std::unique_ptr<OffloadedCaches> caches_;
  std::unique_ptr<OffloadedHidden> hidden_;
};

}  // namespace hydrant
