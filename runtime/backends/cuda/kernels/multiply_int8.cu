#include "runtime/backends/cuda/kernels/multiply_int8.hpp"

#include <algorithm>

#include "runtime/backends/cuda/kernels/ending.cuh"
#include "runtime/backends/cuda/kernels/int8_codes.cuh"
#include "runtime/backends/cuda/kernels/strips.cuh"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp;
// On a multiprocessor, at least; where it is not said, the compiler spills for more.
constexpr int kBlocks = 3;
constexpr int kUnderWay = 128;  // bytes that a lane waits for at a time, or one strip of each row

// What whole number below 2^22 was added to kWholeBits: cheaper than a conversion.
__device__ float whole(int bits) { return __int_as_float(bits) - kWhole; }

__global__ void __launch_bounds__(kThreads) round_int8_kernel(Rows in, Int8Rows out) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * 4;
  const bool inside = i < in.rows * in.width;
  const FourCodes four = round_four(four_of(in, i, inside));
  if (!inside) return;
  const int64_t row = i / in.width, column = i % in.width, group = column / 16;
  const int64_t quads = Int8Rows::quads(in.width);
  *reinterpret_cast<unsigned*>(out.codes + ((row * 4 + group % 4) * quads + group / 4) * 16 +
                               column % 16) = four.codes;
  if (column % kBlock == 0) out.blocks[row * quads * 2 + column / kBlock] = {four.scale, four.sum};
}

// The products of a piece of kRows rows with the tokens' columns are added to their sums. Tokens
// past in.rows have memory, and nothing becomes of what is in it.
template <DType format, int kRows, int kTokens>
__device__ void add_piece(const Strip<format> (&strip)[kRows], int piece, const Int8Rows& in,
                          size_t at, float (&sum)[kRows * kTokens]) {
  using S = Strip<format>;
  constexpr int kTogether = S::kBytes > 16 ? 1 : 2;  // tokens whose loads pass each other
  const auto quads = size_t(Int8Rows::quads(in.width));
  int codes[kRows][S::kWords];
  float factor[kRows], offset[kRows];
#pragma unroll
  for (int r = 0; r < kRows; r++) {
#pragma unroll
    for (int i = 0; i < S::kWords; i++) codes[r][i] = strip[r].four(piece, i);
    factor[r] = strip[r].factor(piece), offset[r] = strip[r].offset(piece);
  }
#pragma unroll
  for (int t = 0; t < kTokens; t++) {
    if (t % kTogether == 0 && t >= in.rows) break;
    int dot[kRows];
#pragma unroll
    for (int r = 0; r < kRows; r++) dot[r] = kWholeBits;
#pragma unroll
    for (int half = 0; half < S::kWords / 4; half++) {
      const size_t group = S::group(at, piece, half);
      const uint4 x = *reinterpret_cast<const uint4*>(
          in.codes + ((size_t(t) * 4 + group % 4) * quads + group / 4) * 16);
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int r = 0; r < kRows; r++)
          dot[r] = __dp4a(codes[r][half * 4 + i], int(word(x, i)), dot[r]);
    }
    const Int8Block block = in.blocks[size_t(t) * quads * 2 + S::group(at, piece, 0) / 2];
#pragma unroll
    for (int r = 0; r < kRows; r++) {
      float& to = sum[r * kTokens + t];
      if constexpr (S::kOffset)
        to = fmaf(block.scale, fmaf(factor[r], whole(dot[r]), offset[r] * block.sum), to);
      else
        to = fmaf(factor[r] * block.scale, whole(dot[r]), to);
    }
  }
}

// A warp for kRows outputs, which share the loads of the tokens' codes. Lane l takes the strips l,
// l + 32, ... of each row, in this order whatever the number of tokens and rows. Before the first
// is used 128 bytes a lane of q4_0, q4_1 and q8_0 are under way, 96 or 192 (kRows = 2, 4) of q4_k
// and q6_k, beside scales. The rows of a panel that are past the last output are there, and are
// zeros.
template <DType format, int kRows, int kTokens>
__global__ void __launch_bounds__(kThreads, kBlocks)
    multiply_int8_kernel(Int8Rows in, WeightView weight, int64_t outputs, Ending ending) {
  using S = Strip<format>;
  constexpr int kAhead = std::max(1, kUnderWay / (kRows * S::kBytes));
  static_assert(kPanelRows % kRows == 0);
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t output = (int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp) * kRows;
  if (output >= outputs) return;
  const RowAt row{weight.panel(output), size_t(output % kPanelRows), size_t(weight.k)};
  const size_t strips = size_t(weight.k) / S::kColumns;
  float sum[kRows * kTokens] = {};
  for (auto first = size_t(lane); first < strips; first += kAhead * kWarp) {
    S strip[kAhead][kRows];
#pragma unroll
    for (int a = 0; a < kAhead; a++)
#pragma unroll
      for (int r = 0; r < kRows; r++)
        if (first + size_t(a * kWarp) < strips)
          strip[a][r].load({row.panel, row.lane + size_t(r), row.k}, first + size_t(a * kWarp));
#pragma unroll
    for (int a = 0; a < kAhead; a++)
#pragma unroll
      for (int p = 0; p < S::kPieces; p++)
        if (first + size_t(a * kWarp) < strips)
          add_piece<format, kRows, kTokens>(strip[a], p, in, first + size_t(a * kWarp), sum);
  }
  const float all = warp_sums(sum, lane);
  constexpr int kShare = kWarp / (kRows * kTokens);  // lanes that have the same sum
  const int64_t r = lane / kShare / kTokens, t = lane / kShare % kTokens;
  if (lane % kShare == 0 && t < in.rows && output + r < outputs) end(ending, t, output + r, all);
}

template <DType format, int kRows, int kTokens>
cudaError_t multiply_as(cudaStream_t stream, const Int8Rows& in, const Weight& weight,
                        const Ending& ending) {
  constexpr int64_t kOutputs = kWarps * kRows;
  return launch(multiply_int8_kernel<format, kRows, kTokens>,
                {dim3(unsigned((weight.n + kOutputs - 1) / kOutputs)), dim3(kThreads), 0, stream},
                in, WeightView(weight), weight.n, ending);
}

}  // namespace

cudaError_t round_int8(cudaStream_t stream, const Rows& in, const Int8Rows& out) {
  constexpr int64_t kColumns = kThreads * 4;
  const int64_t blocks = (in.rows * in.width + kColumns - 1) / kColumns;
  return launch(round_int8_kernel, {dim3(unsigned(blocks)), dim3(kThreads), 0, stream}, in, out);
}

cudaError_t multiply_int8(cudaStream_t stream, const Int8Rows& in, const Weight& weight,
                          const Ending& ending) {
  return with_blocks(weight.format, [&]<DType format>() {
    if (in.rows == 1) return multiply_as<format, 2, 1>(stream, in, weight, ending);
    if (in.rows == 2) return multiply_as<format, 2, 2>(stream, in, weight, ending);
    if (in.rows <= 4) return multiply_as<format, 4, 4>(stream, in, weight, ending);
    return multiply_as<format, 4, kFewTokens>(stream, in, weight, ending);
  });
}

}  // namespace hydrant::cuda
