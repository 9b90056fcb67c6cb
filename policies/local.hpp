// The most recent tokens only.
#pragma once
#include "policies/policy.hpp"

namespace hydrant::policy {

struct Local : WithoutScores {
  static constexpr Id id = Id::local;
  static constexpr std::string_view name = "local";
  static constexpr Regions regions{.recent = true};
};

}  // namespace hydrant::policy
