// Checks of extents that both file formats share.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace hydrant {

// The product of extents that are not negative; nothing when it leaves the 63 bits.
inline std::optional<int64_t> element_count(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  bool fits = true;
  for (const int64_t e : shape) {
    if (e == 0) return 0;  // whatever the other extents are
    fits = fits && !__builtin_mul_overflow(product, e, &product);
  }
  return fits ? std::optional(product) : std::nullopt;
}

}  // namespace hydrant
