// What a planned run is predicted to take.
#pragma once
#include "offload/cost_model.hpp"
#include "runtime/apps/run_plan.hpp"

namespace hydrant {

// Rows of the job as the model of costs counts them; all are like the first.
Workload workload_of(std::span<const Request> rows);

Prediction predict_run(const MachineRates& rates, const Model& model, Device& device,
                       const RunPlan& plan, const BatchShape& shape, DType kv_dtype,
                       const Workload& work);

}  // namespace hydrant
