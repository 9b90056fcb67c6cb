// What mma.cuh asks of the emulator: ldmatrix and mma.sync as PTX defines them lane by lane, so
// that a kernel that gets a fragment wrong computes something wrong.
#pragma once
#include <bit>
#include <cstring>

#include "runtime/base/half.hpp"
#include "test/cuda/emu/device.hpp"

namespace emu {

// Element `i` of a word, as f32.
inline float element(uint32_t word, int i, bool is_f16) {
  const auto bits = uint16_t(word >> (16 * i));
  return is_f16 ? hydrant::f16_to_f32(bits) : hydrant::bf16_to_f32(bits);
}

// Products are exact; a card adds the 16 of a step to the sum with a few bits more than f32 has,
// here with f64, and rounds once.
inline void multiply_add(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         bool is_f16, Place place) {
  const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const Exchange all = warp_exchange(~0u, WarpOp::matrix, mine, sizeof mine, place);
  if (all.arrived != ~0u) fail(place, "mma without all lanes of the warp");
  const unsigned group = current->linear % 32 / 4, column = current->linear % 4 * 2;
  float rows[2][16], columns[2][16];
  for (int k = 0; k < 16; k += 2)
    for (int i = 0; i < 2; i++) {
      uint32_t word;
      const auto from = [&](unsigned lane, int index) {
        std::memcpy(&word, all.slots[lane].bytes + 4 * index, sizeof word);
      };
      from(group * 4 + unsigned(k % 8) / 2, k / 8 * 2 + i);
      rows[i][k] = element(word, 0, is_f16), rows[i][k + 1] = element(word, 1, is_f16);
      from((column + unsigned(i)) * 4 + unsigned(k % 8) / 2, 4 + k / 8);
      columns[i][k] = element(word, 0, is_f16), columns[i][k + 1] = element(word, 1, is_f16);
    }
  for (int i = 0; i < 4; i++) {
    double total = double(sum[i]);
    for (int k = 0; k < 16; k++) total += double(rows[i / 2][k]) * double(columns[i % 2][k]);
    sum[i] = float(total);
  }
}

// 16 rows by 16 columns of int8 times 16 by 8: each sum as its row and column say.
inline void add_dot16(int (&sum)[4], uint32_t upper, uint32_t lower, uint32_t b, Place place) {
  const uint32_t mine[3] = {upper, lower, b};
  const Exchange all = warp_exchange(~0u, WarpOp::matrix, mine, sizeof mine, place);
  if (all.arrived != ~0u) fail(place, "mma without all lanes of the warp");
  const auto element = [&](unsigned row, int word, int k) {
    uint32_t four;
    std::memcpy(&four, all.slots[row * 4 + unsigned(k) / 4].bytes + 4 * word, sizeof four);
    return int{int8_t(four >> (k % 4 * 8))};
  };
  const unsigned group = current->linear % 32 / 4, column = current->linear % 4 * 2;
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 16; k++)
      sum[i] += element(group, i / 2, k) * element(column + unsigned(i) % 2, 2, k);
}

inline void load_squares(uint32_t (&to)[4], const void* row, bool transposed, Place place) {
  if (std::bit_cast<uintptr_t>(row) % 16 != 0)
    fail(place, "ldmatrix from %p, which is not aligned to 16 bytes", row);
  const Exchange all = warp_exchange(~0u, WarpOp::load_matrix, &row, sizeof row, place);
  if (all.arrived != ~0u) fail(place, "ldmatrix without all lanes of the warp");
  const unsigned lane = current->linear % 32;
  for (unsigned square = 0; square < 4; square++) {
    uint16_t pair[2];
    for (unsigned i = 0; i < 2; i++) {
      const unsigned along = lane % 4 * 2 + i, across = lane / 4;
      const uint16_t* from;
      std::memcpy(&from, all.slots[square * 8 + (transposed ? along : across)].bytes, sizeof from);
      pair[i] = from[transposed ? across : along];
    }
    to[square] = pair[0] | uint32_t{pair[1]} << 16;
  }
}

}  // namespace emu
