// What a run would take, before it is run.
#pragma once
#include "policies/budget.hpp"
#include "runtime/apps/run_plan.hpp"

namespace hydrant {

struct MemoryPlan {
  int64_t batch = 0, prompt = 0, length = 0, slots = 0;
  size_t kv = 0, full_kv = 0, workspace = 0;
  RunPlan run;
  std::string misfit;  // why it cannot be run here; "" when it can
};

// For the `inspect` section's rows under the configuration's cache and placement. Throws bad_input
// or bad_config for rows that the model cannot run.
MemoryPlan plan_memory(const RunConfig& config, const Sources& sources, const Model& model,
                       Device& device);

// A row of `prompt` ids that mean nothing, for sizes only.
Request sized_request(const ModelSpec& spec, const policy::Choice& cache, int64_t prompt,
                      int64_t output);

}  // namespace hydrant
