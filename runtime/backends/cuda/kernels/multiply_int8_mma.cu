#include "runtime/backends/cuda/kernels/multiply_int8_mma.hpp"

#include <algorithm>

#include "runtime/backends/cuda/kernels/ending.cuh"
#include "runtime/backends/cuda/kernels/int8_codes.cuh"
#include "runtime/backends/cuda/kernels/slabs.cuh"
#include "runtime/base/aligned.hpp"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kTile = 8;  // tokens

// Four columns to a thread, those of tokens that are not there too.
__global__ void __launch_bounds__(kThreads) round_tiles_kernel(Rows in, Int8Tiles out) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * 4;
  const int64_t token = i / in.width, column = i % in.width;
  const FourCodes four = round_four(four_of(in, i, token < in.rows));
  if (token >= Int8Tiles::tiles(in.rows) * kTile) return;
  const int64_t at = token / kTile * (in.width / kBlock) + column / kBlock;
  const int64_t lane = token % kTile * 4 + column % 16 / 4, half = column % kBlock / 16;
  reinterpret_cast<unsigned*>(out.codes)[(at * kWarp + lane) * 2 + half] = four.codes;
  if (column % kBlock != 0) return;
  out.scales[at * kTile + token % kTile] = four.scale;
  out.totals[at * kTile + token % kTile] = four.sum;
}

// What a lane has of a block of a tile of tokens: codes, and what two of them are scaled by.
struct TokensAt {
  MatrixB codes;
  float2 scales, totals;

  __device__ TokensAt(const Int8Tiles& in, int64_t at, int lane, bool totals_too) {
    const uint2 words = reinterpret_cast<const uint2*>(in.codes)[at * kWarp + lane];
    codes = {{words.x, words.y}};
    const int64_t two = at * (kTile / 2) + lane % 4;
    scales = reinterpret_cast<const float2*>(in.scales)[two];
    totals = totals_too ? reinterpret_cast<const float2*>(in.totals)[two] : float2{0, 0};
  }
};

// What a lane needs of a block of its two rows of a panel. A dot comes as kWhole + dot: sums on
// tensor cores begin there, and fmaf(kWhole + dot, factor, less) is factor * dot, rounded once, for
// factors have so few bits that less = -kWhole * factor is exact.
template <class S>
struct Block {
  static constexpr int kFactors = S::kHalves ? 2 : 1;
  MatrixA codes;
  float factor[2][kFactors], less[2][kFactors], offset[2];

  __device__ void take(const S& slab, int b) {
    codes = slab.codes(b);
#pragma unroll
    for (int r = 0; r < 2; r++) {
#pragma unroll
      for (int half = 0; half < kFactors; half++) {
        factor[r][half] = slab.factor(r, b, half);
        less[r][half] = -kWhole * factor[r][half];
      }
      offset[r] = slab.offset(r, b);
    }
  }
  // sum[r * 2 + t] gets the part of row r and of the tile's t-th token that is the lane's.
  __device__ void add(const TokensAt& in, float (&sum)[4]) const {
    const auto scaled = [&](const MatrixInt& dot, int i, int which) {
      return fmaf(__int_as_float(dot.at[i]), factor[i / 2][which], less[i / 2][which]);
    };
    float value[4];
    if constexpr (S::kHalves) {
      const MatrixInt none{{kWholeBits, kWholeBits, kWholeBits, kWholeBits}};
      const MatrixInt a = dot16_int8(codes.words[0], codes.words[1], in.codes.words[0], none);
      const MatrixInt b = dot16_int8(codes.words[2], codes.words[3], in.codes.words[1], none);
#pragma unroll
      for (int i = 0; i < 4; i++) value[i] = scaled(a, i, 0) + scaled(b, i, 1);
    } else {
      const MatrixInt dot = dot_int8(codes, in.codes, kWholeBits);
#pragma unroll
      for (int i = 0; i < 4; i++) value[i] = scaled(dot, i, 0);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if constexpr (S::kOffset)
        value[i] = fmaf(offset[i / 2], i % 2 ? in.totals.y : in.totals.x, value[i]);
      sum[i] = fmaf(i % 2 ? in.scales.y : in.scales.x, value[i], sum[i]);
    }
  }
};

// On a multiprocessor; the compiler spills where it is to fit more.
template <class S>
constexpr int blocks_at_least(int panels_and_tiles) {
  return S::kHalves || panels_and_tiles > 8 ? 1 : 2;
}

// A block of warps for kPanels panels of 16 outputs and up to kTiles tiles of tokens. Warp w takes
// the slabs w, w + kWarps, ..., the next one under way while one is multiplied; what a lane holds
// serves all tokens. Then the warps' sums come together, half of them at a time. A panel past the
// last is the first again, and nothing becomes of it.
template <DType format, int kPanels, int kTiles>
__global__ void __launch_bounds__(kThreads, blocks_at_least<Slab<format>>(kPanels* kTiles))
    multiply_int8_mma_kernel(Int8Tiles in, WeightView weight, int64_t outputs, Ending ending) {
  using S = Slab<format>;
  constexpr int kOutputs = kPanels * int(kPanelRows), kSums = kPanels * kTiles * 4;
  const int thread = int(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  const int64_t first = int64_t{blockIdx.x} * kOutputs;
  const int64_t blocks = in.width / kBlock, slabs = ceil_div(blocks, int64_t{kSlabBlocks});
  S next[kPanels] = {};
  const auto load = [&](int64_t slab) {
#pragma unroll
    for (int p = 0; p < kPanels; p++) {
      const int64_t row = first + p * kPanelRows;
      next[p].load({weight.panel(row < outputs ? row : first), size_t(weight.k),
                    size_t(lane % 4 * 4), size_t(lane / 4)},
                   size_t(slab));
    }
  };
  float sum[kPanels][kTiles][4] = {};
  if (warp < slabs) load(warp);
  for (int64_t slab = warp; slab < slabs; slab += kWarps) {
    S now[kPanels];
#pragma unroll
    for (int p = 0; p < kPanels; p++) now[p] = next[p];
    if (slab + kWarps < slabs) load(slab + kWarps);
#pragma unroll
    for (int b = 0; b < kSlabBlocks; b++) {
      if (slab * kSlabBlocks + b >= blocks) break;
      Block<S> block[kPanels];
#pragma unroll
      for (int p = 0; p < kPanels; p++) block[p].take(now[p], b);
#pragma unroll
      for (int t = 0; t < kTiles; t++) {
        if (t * kTile >= in.rows) break;
        const TokensAt tokens(in, t * blocks + slab * kSlabBlocks + b, lane, S::kOffset);
#pragma unroll
        for (int p = 0; p < kPanels; p++) block[p].add(tokens, sum[p][t]);
      }
    }
  }

  SHARED(float, parts, [kWarps / 2][kSums][kWarp]);
  for (int warps = kWarps / 2; warps > 0; warps /= 2) {
    if (warp >= warps && warp < 2 * warps)
#pragma unroll
      for (int i = 0; i < kSums; i++)
        parts[warp - warps][i][lane] = sum[i / 4 / kTiles][i / 4 % kTiles][i % 4];
    __syncthreads();
    if (warp < warps)
#pragma unroll
      for (int i = 0; i < kSums; i++)
        sum[i / 4 / kTiles][i / 4 % kTiles][i % 4] += parts[warp][i][lane];
    __syncthreads();
  }
  if (warp == 0)
#pragma unroll
    for (int i = 0; i < kSums; i++) parts[0][i][lane] = sum[i / 4 / kTiles][i / 4 % kTiles][i % 4];
  __syncthreads();
  // Neighbouring threads end neighbouring outputs.
  for (int i = thread; i < kOutputs * kTiles * kTile; i += kThreads) {
    const int output = i % kOutputs, token = i / kOutputs;
    if (token >= in.rows || first + output >= outputs) continue;
    const int p = output / kPanelRows, row = output % kPanelRows, column = token % kTile;
    const int at = (p * kTiles + token / kTile) * 4 + row / 8 * 2 + column % 2;
    end(ending, token, first + output, parts[0][at][row % 8 * 4 + column / 2]);
  }
}

template <DType format, int kPanels, int kTiles>
cudaError_t multiply_as(cudaStream_t stream, const Int8Tiles& in, const Weight& weight,
                        const Ending& ending) {
  const int64_t blocks = ceil_div(weight.n, kPanels * kPanelRows);
  return launch(multiply_int8_mma_kernel<format, kPanels, kTiles>,
                {dim3(unsigned(blocks)), dim3(kThreads), 0, stream}, in, WeightView(weight),
                weight.n, ending);
}

}  // namespace

cudaError_t round_int8(cudaStream_t stream, const Rows& in, const Int8Tiles& out) {
  const int64_t fours = Int8Tiles::tiles(in.rows) * kTile * (in.width / 4);
  return launch(round_tiles_kernel,
                {dim3(unsigned(ceil_div(fours, int64_t{kThreads}))), dim3(kThreads), 0, stream}, in,
                out);
}

cudaError_t multiply_int8_mma(cudaStream_t stream, const Int8Tiles& in, const Weight& weight,
                              const Ending& ending, int32_t multiprocessors) {
  // Two panels to a block halve what it asks of the card's cache for its tokens; one leaves twice
  // the blocks.
  const bool many = weight.n >= 8 * kPanelRows * multiprocessors;
  return with_blocks(weight.format, [&]<DType format>() {
    if (in.rows <= 2 * kTile) return multiply_as<format, 1, 2>(stream, in, weight, ending);
    if (in.rows <= 4 * kTile) return multiply_as<format, 1, 4>(stream, in, weight, ending);
    if (many) return multiply_as<format, 2, 8>(stream, in, weight, ending);
    return multiply_as<format, 1, 8>(stream, in, weight, ending);
  });
}

}  // namespace hydrant::cuda
