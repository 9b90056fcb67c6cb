// Shares of the three homes, the ends of each among them.
#pragma once
#include <cstddef>

#include "offload/shares.hpp"
#include "test/support/random.hpp"

namespace hydrant::test {

inline Shares random_shares(Random& random) {
  const auto percent = [&](int64_t most) { return double(random.below(most + 1)); };
  switch (random.below(6)) {
    case 0:
      return {0, 0, 100};
    case 1:
      return {0, 100, 0};
    case 2: {
      const double device = percent(100);
      return {device, 100 - device, 0};
    }
    default: {
      const double device = percent(100), host = percent(int64_t(100 - device));
      return {device, host, 100 - device - host};
    }
  }
}

// All there is on disk, all on the host, both, and something everywhere, in turn: for devices that
// are too slow for many trials.
inline Shares shares_in_turn(size_t trial) {
  constexpr Shares kAll[] = {{0, 0, 100}, {40, 30, 30}, {0, 100, 0}, {30, 70, 0}};
  return kAll[trial % 4];
}

}  // namespace hydrant::test
