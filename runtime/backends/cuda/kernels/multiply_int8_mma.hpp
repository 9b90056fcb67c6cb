// Products of quantised weights and some tokens whose input is rounded to int8, on tensor cores:
// exact dots of blocks of 32 columns, then f32. Every card that runs this has the instruction.
#pragma once
#include "runtime/backends/cuda/kernels/linear.hpp"

namespace hydrant::cuda {

// The most tokens that multiply_int8_mma() takes.
inline constexpr int64_t kSomeTokens = 64;

// Tokens as int8 codes, x = code * scale, in tiles of eight, in the order in which a warp's lanes
// hold them as MatrixB. Tokens past the last are zeros. A scale is NaN where a column of its block
// is not finite.
struct Int8Tiles {
  std::byte* codes;        // [tile][block][lane][half][4]
  float *scales, *totals;  // [tile][block][token]; totals are the sums of a block's codes
  int64_t rows, width;

  // Width is whole blocks. Memory of bytes(rows, width), aligned to 16.
  Int8Tiles(void* memory, int64_t tokens, int64_t columns)
      : codes(static_cast<std::byte*>(memory)),
        scales(reinterpret_cast<float*>(codes + tiles(tokens) * 8 * columns)),
        totals(scales + tiles(tokens) * 8 * (columns / 32)),
        rows(tokens),
        width(columns) {}
  static size_t bytes(int64_t tokens, int64_t columns) {
    return size_t(tiles(tokens) * 8 * (columns + columns / 32 * 2 * int64_t(sizeof(float))));
  }
  HD static constexpr int64_t tiles(int64_t tokens) { return (tokens + 7) / 8; }
};

cudaError_t round_int8(cudaStream_t stream, const Rows& in, const Int8Tiles& out);
// in . W^T and the ending, for at most kSomeTokens rows and weights in blocks, on a card of so many
// multiprocessors; W is read once. An output's sum has the same bits whatever rows are beside it.
cudaError_t multiply_int8_mma(cudaStream_t stream, const Int8Tiles& in, const Weight& weight,
                              const Ending& ending, int32_t multiprocessors);

}  // namespace hydrant::cuda
