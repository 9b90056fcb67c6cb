// How bytes are divided among their homes.
#pragma once

namespace hydrant {

// In percent; together 100.
struct Shares {
  double device = 100, host = 0, disk = 0;

  friend bool operator==(const Shares&, const Shares&) = default;
};

}  // namespace hydrant
