// A weight matrix in the order that the device multiplies it from.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/dtype.hpp"
#include "runtime/device/kinds.hpp"

namespace hydrant {

inline constexpr int64_t kPanelRows = 16;  // rows of W (= outputs) that are packed together

// Panels of 16 rows of W [n, k], one behind another; a slice of n is a run of panels. panel_bytes
// is the backend's (Ops::panel_bytes) and equals the stored size of 16 rows up to alignment.
struct Weight {
  const void* panels = nullptr;  // null: the model has no such matrix
  DType format = DType::f32;
  Activations activations = Activations::f32;  // what its products round their input to
  int64_t n = 0, k = 0;
  size_t panel_bytes = 0;

  explicit operator bool() const { return panels != nullptr; }
};

// Weights whose outputs stand side by side; unused ones are null, at the end. Four: q, k and v, of
// which one may lie in two runs of panels.
using WeightParts = std::array<Weight, 4>;

}  // namespace hydrant
