// Products of quantised weights and few tokens whose input is rounded to int8: integer dot products
// of blocks, then f32.
#pragma once
#include <bit>

#include "runtime/backends/cuda/kernels/linear.hpp"

namespace hydrant::cuda {

// A block of 32 columns of a token: x = code * scale, which is NaN where one of them is not finite.
struct alignas(8) Int8Block {
  float scale;
  float sum;  // of the codes
};

// Tokens as int8 codes, in the order in which the lanes of a warp read them for weights of any
// format: groups of 16 columns, of which every fourth lie together. There is room for 1, 2, 4 or 8
// tokens, so that a kernel need not ask whether there is another.
struct Int8Rows {
  std::byte* codes;   // [room][group % 4][group / 4][16]
  Int8Block* blocks;  // [room][width / 32, rounded up to an even number]
  int64_t rows, width;

  // Width is whole blocks. Memory of bytes(rows, width), aligned to 16.
  Int8Rows(void* memory, int64_t tokens, int64_t columns)
      : codes(static_cast<std::byte*>(memory)),
        blocks(reinterpret_cast<Int8Block*>(codes + room(tokens) * quads(columns) * 64)),
        rows(tokens),
        width(columns) {}
  static size_t bytes(int64_t tokens, int64_t columns) {
    return size_t(room(tokens) * quads(columns)) * (64 + 2 * sizeof(Int8Block));
  }
  static int64_t room(int64_t tokens) { return int64_t(std::bit_ceil(uint64_t(tokens))); }
  HD static constexpr int64_t quads(int64_t columns) { return (columns + 63) / 64; }
};

cudaError_t round_int8(cudaStream_t stream, const Rows& in, const Int8Rows& out);
// in . W^T and the ending, for at most kFewTokens rows and weights in blocks; W is read once. A sum
// has the same bits whatever the number of rows.
cudaError_t multiply_int8(cudaStream_t stream, const Int8Rows& in, const Weight& weight,
                          const Ending& ending);

}  // namespace hydrant::cuda
