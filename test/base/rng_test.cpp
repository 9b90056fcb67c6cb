#include "runtime/base/rng.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

using namespace hydrant;

TEST_CASE("philox gives the numbers of its authors' known-answer file", "[rng]") {
  using Four = std::array<uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform draws are in [0, 1), evenly spread and differ by every argument", "[rng]") {
  constexpr int kDraws = 100000;
  std::set<double> all;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < kDraws; i++) {
    const double u = uniform(7, 3, i);
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    all.insert(u);
    sum += u;
    squares += u * u;
  }
  // Mean 1/2 and second moment 1/3; their deviations are 0.2887 and 0.2981 over the root of the
  // number of draws. Five of them leave one chance in two million for a good generator.
  CHECK(std::abs(sum / kDraws - 0.5) < 5 * 0.2887 / std::sqrt(kDraws));
  CHECK(std::abs(squares / kDraws - 1.0 / 3) < 5 * 0.2981 / std::sqrt(kDraws));
  CHECK(all.size() == kDraws);
  for (const double other : {uniform(8, 3, 0), uniform(7, 4, 0), uniform(7, 3, uint64_t{1} << 32),
                             uniform(7, uint64_t{3} << 32, 0), uniform(uint64_t{7} << 32, 3, 0)})
    CHECK(!all.contains(other));
}
