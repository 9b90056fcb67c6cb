// A plan in words, and as a configuration.
#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "runtime/apps/plan_search.hpp"

namespace hydrant {

std::string plan_text(const PlanFound& found, const Model& model, const Device& device,
                      const RunConfig& config);

// For generate and bench. Without the model where that is a shape alone.
nlohmann::json plan_config(const PlanOption& option, const Model& model);

}  // namespace hydrant
