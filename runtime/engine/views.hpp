// Parts of dense tensors.
#pragma once
#include "runtime/base/error.hpp"
#include "runtime/device/tensor.hpp"

namespace hydrant {

// Rows [begin, begin + count) of a tensor of plain elements, rows being its first axis.
inline Tensor rows_of(const Tensor& tensor, int64_t begin, int64_t count) {
  const Shape& s = tensor.shape;
  ensure(s.rank() > 0 && begin >= 0 && count >= 0 && begin + count <= s[0],
         "rows [{}, {}) of a tensor of {}", begin, begin + count, s.rank() > 0 ? s[0] : 0);
  const Shape shape = s.rank() == 1   ? Shape{count}
                      : s.rank() == 2 ? Shape{count, s[1]}
                      : s.rank() == 3 ? Shape{count, s[1], s[2]}
                                      : Shape{count, s[1], s[2], s[3]};
  if (!tensor.data) return {nullptr, tensor.dtype, shape};
  const int64_t row = s[0] > 0 ? s.count() / s[0] * row_bytes(tensor.dtype, 1) : 0;
  return {static_cast<std::byte*>(tensor.data) + begin * row, tensor.dtype, shape};
}

inline Tensor first_rows(const Tensor& tensor, int64_t count) { return rows_of(tensor, 0, count); }

}  // namespace hydrant
