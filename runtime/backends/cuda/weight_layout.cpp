#include "runtime/backends/cuda/weight_layout.hpp"

#include <array>
#include <cstring>

#include "runtime/base/error.hpp"

namespace hydrant::cuda {
namespace {

// A stretch of a file's block that goes to a section of its own.
struct Piece {
  size_t from, bytes;
};

// In the order of the sections.
std::span<const Piece> pieces(DType format) {
  static constexpr Piece q8_0[] = {{2, 32}, {0, 2}}, q4_0[] = {{2, 16}, {0, 2}},
                         q4_1[] = {{4, 16}, {0, 4}},
                         q6_k[] = {{0, 128}, {128, 64}, {192, 16}, {208, 2}};
  switch (format) {
    case DType::q8_0:
      return q8_0;
    case DType::q4_0:
      return q4_0;
    case DType::q4_1:
      return q4_1;
    case DType::q6_k:
      return q6_k;
    default:
      return {};
  }
}

}  // namespace

size_t panel_bytes(DType format, int64_t k) {
  ensure(format != DType::i32 && k > 0 && k % block_elements(format) == 0, "a {} panel of k = {}",
         name(format), k);
  return size_t(row_bytes(format, k) * kPanelRows);
}

void pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows, std::byte* panel) {
  ensure(rows.size() <= size_t(kPanelRows), "{} rows for a panel of {}", rows.size(), kPanelRows);
  const size_t row = size_t(row_bytes(format, k));
  if (rows.size() < size_t(kPanelRows)) std::memset(panel, 0, panel_bytes(format, k));
  const std::span<const Piece> sections = pieces(format);
  if (sections.empty()) {
    for (size_t r = 0; r < rows.size(); r++) std::memcpy(panel + r * row, rows[r], row);
    return;
  }
  const auto blocks = size_t(k / block_elements(format)), stored = size_t(block_bytes(format));
  std::byte* section = panel;
  for (const Piece& piece : sections) {
    for (size_t r = 0; r < rows.size(); r++)
      for (size_t b = 0; b < blocks; b++)
        std::memcpy(section + (r * blocks + b) * piece.bytes, rows[r] + b * stored + piece.from,
                    piece.bytes);
    section += size_t(kPanelRows) * blocks * piece.bytes;
  }
}

}  // namespace hydrant::cuda
