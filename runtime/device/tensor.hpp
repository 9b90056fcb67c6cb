// Views of memory that something else owns.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "runtime/base/dtype.hpp"

namespace hydrant {

// Extents of a dense row-major tensor, at most four.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t>
            extents);  // throws internal: more than four, or a negative one
  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extents_[size_t(axis)]; }
  int64_t count() const;  // product; throws internal on overflow; 1 for rank 0
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, 4> extents_{};
  int rank_ = 0;
};

// device: where kernels compute. pinned: host memory that device copies reach at full speed and
// that kernels can read in place. pageable: plain.
enum class Memory : uint8_t { device, pinned, pageable };

// Dense views of plain (not block) types. A null `data` means "not given" where an operation allows
// it.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

struct ConstTensor {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  ConstTensor() = default;
  ConstTensor(const void* at, DType type, Shape extents) : data(at), dtype(type), shape(extents) {}
  ConstTensor(const Tensor& t)
      : data(t.data), dtype(t.dtype), shape(t.shape) {}  // NOLINT: a view of a view
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace hydrant
