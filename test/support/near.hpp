// Many numbers against an oracle in one assertion.
#pragma once
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

namespace hydrant::test {

// The unit roundoff of f32, for derived tolerances.
inline constexpr double kRound = 0x1p-24;

struct Expected {
  double value, tolerance;
};

// Every out[i] must be within its tolerance of expected(i); reports the first that is not.
template <class At>
void check_near(const std::vector<float>& out, const At& expected) {
  size_t bad = 0;
  Expected e{};
  for (; bad < out.size(); bad++) {
    e = expected(bad);
    if (!(std::abs(double(out[bad]) - e.value) <= e.tolerance)) break;
  }
  if (bad == out.size()) {
    SUCCEED();
    return;
  }
  INFO("element " << bad << " of " << out.size() << " is " << out[bad] << ", expected " << e.value
                  << " within " << e.tolerance);
  CHECK(bad == out.size());
}

}  // namespace hydrant::test
