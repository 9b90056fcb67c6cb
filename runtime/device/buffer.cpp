#include "runtime/device/buffer.hpp"

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {

Arena::Arena(const Buffer& backing)
    : base_(static_cast<std::byte*>(backing.data())), limit_(backing.bytes()) {}

void* Arena::take_bytes(size_t bytes) {
  void* at = base_ ? base_ + used_ : nullptr;
  used_ += align_up(bytes, size_t{64});
  ensure(!base_ || used_ <= limit_, "an arena of {} bytes was asked for {}", limit_, used_);
  return at;
}

Tensor Arena::take(DType dtype, Shape shape) {
  return {take_bytes(size_t(row_bytes(dtype, shape.count()))), dtype, shape};
}

}  // namespace hydrant
