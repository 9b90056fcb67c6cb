// How bytes are divided among their homes.
#pragma once
#include <string_view>

namespace hydrant {

// In percent; together 100.
struct Shares {
  double device = 100, host = 0, disk = 0;

  friend bool operator==(const Shares&, const Shares&) = default;
};

// Throws bad_config, naming the keys below `key`, when a share is negative or they are not 100
// together.
void check_shares(const Shares& shares, std::string_view key);

}  // namespace hydrant
