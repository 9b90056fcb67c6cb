#include "runtime/device/tensor.hpp"

#include <algorithm>

#include "runtime/base/error.hpp"

namespace hydrant {

Shape::Shape(std::initializer_list<int64_t> extents) : rank_(int(extents.size())) {
  ensure(extents.size() <= extents_.size(), "a shape of {} extents", extents.size());
  for (const int64_t e : extents) ensure(e >= 0, "a negative extent, {}", e);
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

int64_t Shape::count() const {
  int64_t product = 1;
  for (int i = 0; i < rank_; i++)
    ensure(!__builtin_mul_overflow(product, extents_[size_t(i)], &product), "a shape overflows");
  return product;
}

}  // namespace hydrant
