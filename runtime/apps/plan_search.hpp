// Looks for the placement and the batch that are predicted to be fastest.
#pragma once
#include "runtime/apps/prediction.hpp"

namespace hydrant {

struct PlanOption {
  RunConfig config;    // of a run: cache, placement, prefetch and batch as chosen
  std::string budget;  // "" with the full cache
  RunPlan plan;
  BatchShape shape;
  Workload work;
  Prediction prediction;

  int64_t batch() const { return int64_t{shape.rows_per_group} * shape.groups; }
  bool offloads() const { return !plan.all_on_device(); }
  double speed() const { return prediction.tokens_per_second(); }
};

struct PlanFound {
  std::vector<PlanOption> options;  // that fit, the fastest first
  // With the host's share of memory given to the device, where that is the same memory: everything
  // is computed on where it lies.
  std::optional<PlanOption> in_place;
  size_t looked_at = 0;
};

// Caps that are not given are what the machine has free. Throws out_of_memory, naming the largest
// items, when not even a row at a time fits.
PlanFound search_plans(const RunConfig& config, const Sources& sources, const Model& model,
                       Device& device, const MachineRates& rates);

}  // namespace hydrant
