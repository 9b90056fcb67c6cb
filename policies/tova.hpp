// What the latest query attended to; nothing is remembered. Source: TOVA (arXiv 2401.06104).
#pragma once
#include "policies/policy.hpp"

namespace hydrant::policy {

struct Tova {
  static constexpr Id id = Id::tova;
  static constexpr std::string_view name = "tova";
  static constexpr Regions regions{.sinks = true, .heavy = true, .recent = true, .usual_recent = 1};
  static constexpr bool wants_mass = true;
  HD static constexpr float from_prompt(PromptColumn column) { return column.last; }
  HD static constexpr float observe(float, float mass) { return mass; }
  HD static constexpr float keep(float score, bool) { return score; }
};

}  // namespace hydrant::policy
