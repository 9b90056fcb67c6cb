// The most recent tokens, and of the older ones those that were attended to most so far. Source:
// H2O (arXiv 2306.14048), algorithm 1 with accumulated scores: the token that leaves the recent
// window competes with the heavy hitters on equal terms.
#pragma once
#include "policies/policy.hpp"

namespace hydrant::policy {

struct H2o {
  static constexpr Id id = Id::h2o;
  static constexpr std::string_view name = "h2o";
  static constexpr Regions regions{.sinks = true, .heavy = true, .recent = true};
  static constexpr bool wants_mass = true;
  HD static constexpr float from_prompt(PromptColumn column) { return column.sum; }
  HD static constexpr float observe(float score, float mass) { return score + mass; }
  HD static constexpr float keep(float score, bool) { return score; }
};

}  // namespace hydrant::policy
