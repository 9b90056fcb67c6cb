// Where things lie inside a panel of 16 rows of W.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/aligned.hpp"
#include "runtime/base/dtype.hpp"
#include "runtime/device/weight.hpp"

namespace hydrant::cpu {

// Lanes are rows of W, and k runs from front to back, so that a product walks a panel once, in
// order, and an output is one chain over k in one lane.
//
//   f32, f16   [k][16]
//   bf16       [k / 2][16][2]; an odd k is padded with zero
//   q8_0 ...   units { head, codes of its blocks }, see below; a block is 32 neighbours of k
//
// Codes are unsigned (q8_0: + 128), four neighbours of k, a quad, per lane: [quad][16][4] bytes for
// q8_0. Nibbles are [4][16][4] bytes: the low half of line j is quad j, the high half quad j + 4.
// q6_k adds two lines with bits 4 and 5: bits 2q and 2q + 1 of line h belong to quad 4h + q.
struct BlockLayout {
  int64_t unit_blocks;  // blocks of one unit; the last unit may have fewer
  size_t head_bytes, code_bytes;

  constexpr size_t unit_bytes() const { return head_bytes + size_t(unit_blocks) * code_bytes; }
  constexpr size_t head(int64_t block) const { return size_t(block / unit_blocks) * unit_bytes(); }
  constexpr size_t codes(int64_t block) const {
    return head(block) + head_bytes + size_t(block % unit_blocks) * code_bytes;
  }
  constexpr size_t panel_bytes(int64_t blocks) const {
    return size_t(ceil_div(blocks, unit_blocks)) * head_bytes + size_t(blocks) * code_bytes;
  }
};

inline constexpr int64_t kBlock = 32;

// Heads: q8_0, q4_0  scale f16 [2][16]
//        q4_1        scale f16 [16], minimum f16 [16]
//        q4_k        scale f16 [16], minimum f16 [16], then per block { factor of the scale u8
//        [16],
//                    of the minimum u8 [16] }
//        q6_k        scale f16 [16], 32 unused bytes, then per half block: factor i8 [16]
constexpr BlockLayout block_layout(DType format) {
  switch (format) {
    case DType::q8_0:
      return {2, 64, 512};
    case DType::q4_0:
      return {2, 64, 256};
    case DType::q4_1:
      return {1, 64, 256};
    case DType::q4_k:
      return {8, 64 + 256, 256};
    case DType::q6_k:
      return {8, 64 + 256, 256 + 128};
    default:
      return {1, 0, 0};  // not a block format
  }
}
inline constexpr size_t kFactors = 64;  // q4_k, q6_k: where a head's factors begin

}  // namespace hydrant::cpu
