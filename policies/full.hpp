// Keeps everything.
#pragma once
#include "policies/policy.hpp"

namespace hydrant::policy {

struct Full : WithoutScores {
  static constexpr Id id = Id::full;
  static constexpr std::string_view name = "full";
  static constexpr Regions regions{};
};

}  // namespace hydrant::policy
