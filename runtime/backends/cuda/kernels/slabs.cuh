// Slabs: what a lane holds of 16 rows by 128 columns of quantised weights (weight_layout.hpp) for
// int8 products on tensor cores: with g = lane / 4 and q = lane % 4 * 4 of rows g and g + 8, out of
// each block of 32 columns, columns q to q + 3 and q + 16 to q + 19, as MatrixA wants them. Codes
// and scales are those of strips.cuh:
//
//   value = code * factor(row, block, half) + offset(row, block), the offset only where kOffset
//
// and the halves of a block have factors of their own only where kHalves. Loads are of 4 bytes: the
// four lanes of a row ask for 16 that lie together, and those of the next block for the rest of the
// sector. What lies past a row's end is left as it was.
#pragma once
#include "runtime/backends/cuda/kernels/strips.cuh"
#include "runtime/backends/cuda/mma.cuh"

namespace hydrant::cuda {

inline constexpr int kSlabBlocks = 4;  // of 32 columns

// A lane's place in a panel.
struct SlabAt {
  const std::byte* panel;
  size_t k, q, g;
  __device__ size_t row(int r) const { return g + size_t(r) * 8; }
};

template <DType format>
struct Slab;

template <>
struct Slab<DType::q8_0> {
  static constexpr bool kOffset = false, kHalves = false;
  unsigned words[2][kSlabBlocks][2];
  __half scale[2][kSlabBlocks];

  __device__ void load(const SlabAt& at, size_t slab) {
    const size_t blocks = at.k / 32;
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
      for (int b = 0; b < kSlabBlocks; b++) {
        const size_t block = at.row(r) * blocks + slab * kSlabBlocks + size_t(b);
        if (slab * kSlabBlocks + size_t(b) >= blocks) break;
        words[r][b][0] = read<unsigned>(at.panel + block * 32 + at.q);
        words[r][b][1] = read<unsigned>(at.panel + block * 32 + 16 + at.q);
        scale[r][b] = read<__half>(at.panel + kPanelRows * at.k + block * 2);
      }
  }
  __device__ MatrixA codes(int b) const {
    return {{words[0][b][0], words[1][b][0], words[0][b][1], words[1][b][1]}};
  }
  __device__ float factor(int r, int b, int) const { return to_float(scale[r][b]); }
  __device__ float offset(int, int) const { return 0; }
};

// Low nibbles are the first 16 columns of a block, high ones the others. kMinimum: q4_1.
template <bool kMinimum>
struct NibbleSlab {
  static constexpr bool kOffset = kMinimum, kHalves = false;
  using Head = std::conditional_t<kMinimum, __half2, __half>;
  unsigned words[2][kSlabBlocks];
  Head head[2][kSlabBlocks];

  __device__ void load(const SlabAt& at, size_t slab) {
    const size_t blocks = at.k / 32;
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
      for (int b = 0; b < kSlabBlocks; b++) {
        const size_t block = at.row(r) * blocks + slab * kSlabBlocks + size_t(b);
        if (slab * kSlabBlocks + size_t(b) >= blocks) break;
        words[r][b] = read<unsigned>(at.panel + block * 16 + at.q);
        head[r][b] = read<Head>(at.panel + kPanelRows * at.k / 2 + block * sizeof(Head));
      }
  }
  __device__ MatrixA codes(int b) const {
    const auto four = [&](int r, bool high) {
      return unsigned(kMinimum ? nibbles(words[r][b], high) : centred_nibbles(words[r][b], high));
    };
    return {{four(0, false), four(1, false), four(0, true), four(1, true)}};
  }
  __device__ float factor(int r, int b, int) const {
    if constexpr (kMinimum)
      return __half22float2(head[r][b]).x;
    else
      return to_float(head[r][b]) * 0.0625f;
  }
  __device__ float offset(int r, int b) const {
    if constexpr (kMinimum)
      return __half22float2(head[r][b]).y;
    else
      return 0;
  }
};
template <>
struct Slab<DType::q4_0> : NibbleSlab<false> {};
template <>
struct Slab<DType::q4_1> : NibbleSlab<true> {};

// Half of a block of 256: twice 32 bytes, whose low nibbles are 32 columns and high ones the next.
template <>
struct Slab<DType::q4_k> {
  static constexpr bool kOffset = true, kHalves = false;
  unsigned words[2][2][2];
  unsigned factors[2], minimums[2];  // a byte for each 32 columns
  float2 scales[2];

  __device__ void load(const SlabAt& at, size_t slab) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const std::byte* const block = at.panel + (at.row(r) * (at.k / 256) + slab / 2) * 144;
      const uint4 head = read<uint4>(block);
      const std::byte* const codes = block + 16 + slab % 2 * 64 + at.q;
#pragma unroll
      for (int pair = 0; pair < 2; pair++)
#pragma unroll
        for (int half = 0; half < 2; half++)
          words[r][pair][half] = read<unsigned>(codes + pair * 32 + half * 16);
      const SixBits six(head, slab % 2 == 1);
      factors[r] = six.factors, minimums[r] = six.minimums, scales[r] = scales_of(head);
    }
  }
  __device__ MatrixA codes(int b) const {
    const auto four = [&](int r, int half) {
      return unsigned(nibbles(words[r][b / 2][half], b % 2 == 1));
    };
    return {{four(0, 0), four(1, 0), four(0, 1), four(1, 1)}};
  }
  __device__ float factor(int r, int b, int) const {
    return scales[r].x * float(factors[r] >> (8 * b) & 255u);
  }
  __device__ float offset(int r, int b) const {
    return scales[r].y * float(minimums[r] >> (8 * b) & 255u);
  }
};

// Half of a block of 256: 64 bytes of nibbles, of whose 32 columns each low ones are quarters 0 and
// 1, high ones 2 and 3; 32 bytes of high pairs of bits, shared by all quarters; 8 factors.
template <>
struct Slab<DType::q6_k> {
  static constexpr bool kOffset = false, kHalves = true;
  unsigned low[2][2][2], high[2][2];
  uint2 factors[2];
  __half scale[2];

  __device__ void load(const SlabAt& at, size_t slab) {
    const Q6kSections sections{int64_t(at.k)};
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const size_t block = at.row(r) * (at.k / 256) + slab / 2, second = slab % 2;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const std::byte* const nibble = at.panel + block * 128 + second * 64 + at.q + half * 16;
        low[r][0][half] = read<unsigned>(nibble);
        low[r][1][half] = read<unsigned>(nibble + 32);
        high[r][half] =
            read<unsigned>(at.panel + sections.high + block * 64 + second * 32 + at.q + half * 16);
      }
      factors[r] = read<uint2>(at.panel + sections.factor + block * 16 + second * 8);
      scale[r] = read<__half>(at.panel + sections.scale + block * 2);
    }
  }
  __device__ MatrixA codes(int b) const {
    const auto four = [&](int r, int half) {
      return unsigned(centred_sixes(low[r][b % 2][half], high[r][half], b));
    };
    return {{four(0, 0), four(1, 0), four(0, 1), four(1, 1)}};
  }
  __device__ float factor(int r, int b, int half) const {
    const unsigned pair = (b < 2 ? factors[r].x : factors[r].y) >> (16 * (b % 2) + 8 * half);
    return to_float(scale[r]) * 0.25f * float(int8_t(pair & 255u));
  }
  __device__ float offset(int, int) const { return 0; }
};

}  // namespace hydrant::cuda
