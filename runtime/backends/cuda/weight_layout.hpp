// What is inside a panel of 16 rows of W on the device: rows one behind another, as cuBLAS and
// loads of 8 or 16 bytes want them. Its bytes are the stored bytes.
//
//   f32, f16, bf16, q4_k   the rows as they stand in the file
//   q8_0, q4_0, q4_1       the codes of all rows, then the scales (q4_1: scale, minimum) of all
//   rows q6_k                   low nibbles, high pairs of bits, factors, scales: each of all rows
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "policies/hd.hpp"
#include "runtime/base/dtype.hpp"
#include "runtime/device/weight.hpp"

namespace hydrant::cuda {

// Where the sections of a q6_k panel begin.
struct Q6kSections {
  int64_t high, factor, scale;
  HD constexpr explicit Q6kSections(int64_t k)
      : high(kPanelRows * k / 2),
        factor(high + kPanelRows * k / 4),
        scale(factor + kPanelRows * k / 16) {}
};

// k is whole blocks of the format.
size_t panel_bytes(DType format, int64_t k);
// Missing rows are zero. Any thread.
void pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows, std::byte* panel);

}  // namespace hydrant::cuda
