// Finding numbers that are none in weights as they stand in a file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/dtype.hpp"

namespace hydrant {

// Whether all values of a row are finite: for plain types each one, for blocks their scales (codes
// are integers, so a block is finite when its scales are).
bool all_finite(DType dtype, std::span<const std::byte> row);

}  // namespace hydrant
