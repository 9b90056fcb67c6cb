// H2O as FlexGen implements it: the token that leaves the recent window always becomes a heavy
// hitter and displaces the weakest one, which it can be itself a step later.
#pragma once
#include "policies/h2o.hpp"

namespace hydrant::policy {

struct H2oPromote : H2o {
  static constexpr Id id = Id::h2o_promote;
  static constexpr std::string_view name = "h2o_promote";
  HD static constexpr float keep(float score, bool leaving) { return leaving ? kNever : score; }
};

}  // namespace hydrant::policy
