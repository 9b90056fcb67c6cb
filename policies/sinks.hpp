// The first tokens and the most recent ones. Source: StreamingLLM (arXiv 2309.17453).
#pragma once
#include "policies/policy.hpp"

namespace hydrant::policy {

struct Sinks : WithoutScores {
  static constexpr Id id = Id::sinks;
  static constexpr std::string_view name = "sinks";
  static constexpr Regions regions{.sinks = true, .recent = true, .usual_sinks = 4};
};

}  // namespace hydrant::policy
