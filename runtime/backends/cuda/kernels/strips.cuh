// Strips: what a lane takes at once of a row of quantised weights (weight_layout.hpp), as int8
// codes four to a word, for integer dot products. A strip is one or several pieces; a piece's
// columns have one scale:
//
//   value = code * factor(piece) + offset(piece), the offset only where kOffset
//
// kBytes of it come in loads of 16 bytes, which are under way at the same time.
// All pieces of all strips of a row are its groups of 16 columns; group(s, p, half) is the half-th
// of piece p of strip s. Neighbouring lanes' strips lie side by side, so that a warp's loads are of
// whole sectors. Codes that carry a bias lose it as the top bits of bytes: (code - 8) * 16 is
// code << 4 with the sign's bit turned over, and the factor makes up for the 16.
#pragma once
#include "runtime/backends/cuda/kernels/weights.cuh"

namespace hydrant::cuda {

// Where a row of a panel begins, by its number in the panel.
struct RowAt {
  const std::byte* panel;
  size_t lane, k;
};

__device__ inline uint4 stream16(const std::byte* at) {
  return __ldcs(reinterpret_cast<const uint4*>(at));
}
__device__ inline unsigned word(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// Four codes of four bits as they are, and as (code - 8) * 16; of six bits as (code - 32) * 4, of
// which nibbles are in quarter p's bytes, the rest in high pairs that all four quarters share.
__device__ inline int nibbles(unsigned bytes, bool high) {
  return int((high ? bytes >> 4 : bytes) & 0x0f0f0f0fu);
}
__device__ inline int centred_nibbles(unsigned bytes, bool high) {
  return int(((high ? bytes : bytes << 4) & 0xf0f0f0f0u) ^ 0x80808080u);
}
__device__ inline int centred_sixes(unsigned bytes, unsigned pairs, int p) {
  const unsigned nibble = (p < 2 ? bytes << 2 : bytes >> 2) & 0x3c3c3c3cu;
  return int((nibble | (pairs << (6 - 2 * p) & 0xc0c0c0c0u)) ^ 0x80808080u);
}

// The head of a q4_k block: two halves, then factors and minimums of six bits (unpack8 has their
// places), here those of one half of the block, a byte each.
struct SixBits {
  unsigned factors, minimums;
  __device__ SixBits(const uint4& head, bool second)
      : factors(second ? (head.w & 0x0f0f0f0fu) | (head.y >> 2 & 0x30303030u)
                       : head.y & 0x3f3f3f3fu),
        minimums(second ? (head.w >> 4 & 0x0f0f0f0fu) | (head.z >> 2 & 0x30303030u)
                        : head.z & 0x3f3f3f3fu) {}
};
// Of the factors, and of the minimums negated.
__device__ inline float2 scales_of(const uint4& head) {
  __half2 both;
  memcpy(static_cast<void*>(&both), &head.x, sizeof both);
  const float2 scales = __half22float2(both);
  return {scales.x, -scales.y};
}

template <DType format>
struct Strip;

template <>
struct Strip<DType::q8_0> {
  static constexpr int kBytes = 16, kColumns = 16, kPieces = 1, kWords = 4;
  static constexpr bool kOffset = false;
  uint4 codes;
  float scale;

  __device__ static size_t group(size_t s, int, int) { return s; }
  __device__ void load(const RowAt& row, size_t s) {
    codes = stream16(row.panel + row.lane * row.k + s * 16);
    scale = half_at(row.panel + kPanelRows * row.k + (row.lane * (row.k / 32) + s / 2) * 2);
  }
  __device__ int four(int, int i) const { return int(word(codes, i)); }
  __device__ float factor(int) const { return scale; }
  __device__ float offset(int) const { return 0; }
};

// Low nibbles are the first 16 columns of a block, high ones the others.
template <>
struct Strip<DType::q4_0> {
  static constexpr int kBytes = 16, kColumns = 32, kPieces = 1, kWords = 8;
  static constexpr bool kOffset = false;
  uint4 codes;
  float scale;

  __device__ static size_t group(size_t s, int, int half) { return 2 * s + size_t(half); }
  __device__ void load(const RowAt& row, size_t s) {
    codes = stream16(row.panel + row.lane * (row.k / 2) + s * 16);
    scale = half_at(row.panel + kPanelRows * row.k / 2 + (row.lane * (row.k / 32) + s) * 2);
  }
  __device__ int four(int, int i) const { return centred_nibbles(word(codes, i % 4), i >= 4); }
  __device__ float factor(int) const { return scale * 0.0625f; }
  __device__ float offset(int) const { return 0; }
};

template <>
struct Strip<DType::q4_1> {
  static constexpr int kBytes = 16, kColumns = 32, kPieces = 1, kWords = 8;
  static constexpr bool kOffset = true;
  uint4 codes;
  float scale, least;

  __device__ static size_t group(size_t s, int, int half) { return 2 * s + size_t(half); }
  __device__ void load(const RowAt& row, size_t s) {
    codes = stream16(row.panel + row.lane * (row.k / 2) + s * 16);
    const float2 head = __half22float2(
        read<__half2>(row.panel + kPanelRows * row.k / 2 + (row.lane * (row.k / 32) + s) * 4));
    scale = head.x, least = head.y;
  }
  __device__ int four(int, int i) const { return nibbles(word(codes, i % 4), i >= 4); }
  __device__ float factor(int) const { return scale; }
  __device__ float offset(int) const { return least; }
};

// A quarter of a block, 32 bytes: low nibbles are one piece, high ones the next. Four neighbours
// share the block's head.
template <>
struct Strip<DType::q4_k> {
  static constexpr int kBytes = 48, kColumns = 64, kPieces = 2, kWords = 8;
  static constexpr bool kOffset = true;
  uint4 low, high;
  float2 scales;
  unsigned factors, minimums;  // a byte for each piece

  __device__ static size_t group(size_t s, int p, int half) { return 4 * s + size_t(2 * p + half); }
  __device__ void load(const RowAt& row, size_t s) {
    const std::byte* const block = row.panel + (row.lane * (row.k / 256) + s / 4) * 144;
    const int quarter = int(s % 4), shift = quarter % 2 * 16;
    low = stream16(block + 16 + quarter * 32);
    high = stream16(block + 32 + quarter * 32);
    const uint4 head = stream16(block);
    scales = scales_of(head);
    const SixBits six(head, quarter >= 2);
    factors = six.factors >> shift;
    minimums = six.minimums >> shift;
  }
  __device__ int four(int p, int i) const {
    return nibbles(word(i < 4 ? low : high, i % 4), p == 1);
  }
  __device__ float factor(int p) const { return scales.x * float(factors >> (8 * p) & 255u); }
  __device__ float offset(int p) const { return scales.y * float(minimums >> (8 * p) & 255u); }
};

// 16 bytes of each of a block half's four quarters: quarters 0 and 2 are nibbles of the same bytes,
// so are 1 and 3, and all four share 16 bytes of high pairs of bits.
template <>
struct Strip<DType::q6_k> {
  static constexpr int kBytes = 48, kColumns = 64, kPieces = 4, kWords = 4;
  static constexpr bool kOffset = false;
  uint4 even, odd, high;
  uint2 factors;  // of the half's 16 columns each
  float scale;
  int at;  // which 16 of a quarter's 32 columns

  __device__ static size_t group(size_t s, int p, int) { return s / 2 * 8 + size_t(2 * p) + s % 2; }
  __device__ void load(const RowAt& row, size_t s) {
    const Q6kSections sections{int64_t(row.k)};
    const size_t block = row.lane * (row.k / 256) + s / 4;
    const int half = int(s / 2 % 2);
    at = int(s % 2);
    const std::byte* const nibbles = row.panel + block * 128 + half * 64 + at * 16;
    even = stream16(nibbles);
    odd = stream16(nibbles + 32);
    high = stream16(row.panel + sections.high + block * 64 + half * 32 + at * 16);
    factors = read<uint2>(row.panel + sections.factor + block * 16 + half * 8);
    scale = half_at(row.panel + sections.scale + block * 2);
  }
  __device__ int four(int p, int i) const {
    return centred_sixes(word(p % 2 ? odd : even, i), word(high, i), p);
  }
  __device__ float factor(int p) const {
    const unsigned pair = (p < 2 ? factors.x : factors.y) >> (16 * (p % 2) + 8 * at);
    return scale * 0.25f * float(int8_t(pair & 255u));
  }
  __device__ float offset(int) const { return 0; }
};

}  // namespace hydrant::cuda
