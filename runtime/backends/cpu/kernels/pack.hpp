// Weights: from the order of files to panels, and rows out of panels again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/dtype.hpp"

namespace hydrant::cpu {

// Bytes of a panel of 16 rows of k elements: the stored bytes, rounded up where 64-byte alignment
// asks for it. k is whole blocks of the format.
size_t panel_bytes(DType format, int64_t k);

// Packs up to 16 rows as they stand in a file; missing rows are zero. Any thread.
void pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows, std::byte* panel);

// The f32 values of row `lane` of a panel: exact, or rounded once where the format adds a minimum.
void unpack_row(DType format, int64_t k, const std::byte* panel, int lane, float* out);

}  // namespace hydrant::cpu
