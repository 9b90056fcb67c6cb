// What linear_*.inl give for each instruction path.
#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/kernels/panel_layout.hpp"
#include "runtime/device/kinds.hpp"

namespace hydrant::cpu {

inline constexpr int kMostTileRows = 16;
inline constexpr int kMostTilePanels = 16;

// sums[panel][row][16] = one tile of `shape` rows of x times neighbouring panels.
using MultiplyTile = void (*)(const std::byte* tile, const std::byte* panels, size_t panel_bytes,
                              int count, int64_t k, float* sums);
// k elements of `rows` rows of x, `stride` apart, into a tile of `shape` rows; the others become
// zero. A tile may be packed in pieces of whole 32s of k.
using PackTile = void (*)(const float* x, int64_t stride, int64_t k, int rows, int shape,
                          std::byte* tile);

// The last steps of the chains: out = after(sum + bias) + residual.
struct LinearEnd {
  const float* bias;      // null or [columns]
  const float* residual;  // null or like out; may be out
  float* out;             // [rows][stride]
  int64_t stride;
  Activation after;
};
// For one tile: panel p of `sums` begins at column + 16 p; columns from `columns` on do not exist.
using FinishTile = void (*)(const LinearEnd& end, const float* sums, int shape, int count,
                            int64_t first_row, int rows, int64_t column, int64_t columns);

struct LinearShapes {
  int rows[6];  // of a tile, ascending, zeros after the last
};

struct LinearPath {
  // By Activations.
  LinearShapes shapes[3];
  size_t row_bytes_per_block[3];  // of packed x, for 32 elements of k
  PackTile pack[3];
  // The kernel for tiles of shapes[activations].rows[shape]; null: this format is not multiplied
  // so.
  MultiplyTile (*kernel)(DType format, Activations activations, int shape);
  FinishTile finish;
};

namespace generic {
extern const LinearPath linear;
}
namespace avx2 {
extern const LinearPath linear;
}
namespace avx512 {
extern const LinearPath linear;
}
namespace avx512_bf16 {
extern const LinearPath linear;
}
namespace amx {
const LinearPath& linear();  // avx512_bf16's with other kernels
}

}  // namespace hydrant::cpu
