#include "runtime/backends/cuda/kernels/linear_f16.hpp"

#include "runtime/backends/cuda/kernels/weights.cuh"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBias = 127;  // of an f32's exponent, which begins at bit 23

struct MostBits {
  __device__ int operator()(int a, int b) const { return max(a, b); }
};

// Magnitudes in the order of their bits: NaNs are past infinity.
__device__ int magnitude(float x) { return __float_as_int(x) & 0x7fffffff; }

__device__ float power_of_two(int exponent) { return __int_as_float((kBias + exponent) << 23); }

// e for 2^e. At most 126, so that 2^-e is no subnormal either.
__device__ int exponent_for(int most) {
  const int biased = most >> 23;
  return biased == 255 ? 0 : min(13 - (biased - kBias), 126);
}

// A lane's element of a block of 32, which all lanes of a warp have: its int8 code times the
// block's scale, as multiply_int8 takes it. A NaN or infinity spoils its block.
__device__ float as_int8(float x) {
  const int most = warp_join(magnitude(x), MostBits{});
  if (most >> 23 == 255) return NAN;
  const float largest = __int_as_float(most);
  return largest > 1e-30f ? rintf(x * (127.0f / largest)) * (largest / 127.0f) : 0.0f;
}

template <Activations how>
__device__ float rounded(float x) {
  if constexpr (how == Activations::int8)
    return as_int8(x);
  else if constexpr (how == Activations::bf16)
    return to_float(from_float<__nv_bfloat16>(x));
  else
    return x;
}

__device__ int most_of_row(const float* row, int64_t width) {
  int most = 0;
  for (int64_t c = threadIdx.x; c < width; c += kThreads) most = max(most, magnitude(row[c]));
  return block_join<kThreads>(most, MostBits{});
}

// A block for a row.
__global__ void __launch_bounds__(kThreads) round_f16_kernel(Rows in, float* out) {
  const int64_t row = int64_t{blockIdx.x} * in.width;
  const int exponent = exponent_for(most_of_row(in.data + row, in.width));
  const float scale = power_of_two(exponent), back = power_of_two(-exponent);
  for (int64_t c = threadIdx.x; c < in.width; c += kThreads)
    out[row + c] = to_float(from_float<__half>(in.data[row + c] * scale)) * back;
}

// A block for a row.
template <Activations how>
__global__ void __launch_bounds__(kThreads)
    to_f16_kernel(Rows in, int64_t wide, __half* out, float* back) {
  const int64_t row = blockIdx.x;
  const float* const from = in.data + row * in.width;
  const int exponent = exponent_for(most_of_row(from, in.width));
  const float scale = power_of_two(exponent);
  if (threadIdx.x == 0) back[row] = power_of_two(-exponent);
  // whole warps come to each 32 columns
  for (int64_t c = threadIdx.x; c < (wide + kWarp - 1) / kWarp * kWarp; c += kThreads) {
    const float x = rounded<how>(c < in.width ? from[c] : 0.0f);
    if (c < wide) out[row * wide + c] = from_float<__half>(x * scale);
  }
}

// Eight columns each.
template <DType format>
__global__ void __launch_bounds__(kThreads)
    unpack_f16_kernel(WeightView weight, int64_t first, int64_t count, int64_t wide, uint4* out) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, chunks = wide / 8;
  if (i >= count * chunks) return;
  const int64_t row = first + i / chunks, c = i % chunks;
  float v[8];
  if (weight.k == wide) {
    unpack8<format>(weight, row, c, v);
  } else {
    for (int j = 0; j < 8; j++)
      v[j] = c * 8 + j < weight.k ? weight_at<format>(weight, row, c * 8 + j) : 0.0f;
  }
  __half halves[8];
  for (int j = 0; j < 8; j++) halves[j] = from_float<__half>(v[j]);
  uint4 words;
  memcpy(&words, static_cast<const void*>(halves), sizeof words);
  out[i] = words;
}

}  // namespace

cudaError_t round_f16(cudaStream_t stream, const Rows& in, float* out) {
  return launch(round_f16_kernel, {dim3(unsigned(in.rows)), dim3(kThreads), 0, stream}, in, out);
}

cudaError_t to_f16(cudaStream_t stream, Activations how, const Rows& in, void* out, float* back) {
  const auto kernel = how == Activations::int8   ? to_f16_kernel<Activations::int8>
                      : how == Activations::bf16 ? to_f16_kernel<Activations::bf16>
                                                 : to_f16_kernel<Activations::f16>;
  return launch(kernel, {dim3(unsigned(in.rows)), dim3(kThreads), 0, stream}, in,
                half_width(in.width), static_cast<__half*>(out), back);
}

cudaError_t unpack_f16(cudaStream_t stream, const Weight& weight, int64_t first, int64_t count,
                       void* out) {
  const int64_t wide = half_width(weight.k);
  const int64_t blocks = (count * wide / 8 + kThreads - 1) / kThreads;
  return with_format(weight.format, [&]<DType format>() {
    return launch(unpack_f16_kernel<format>, {dim3(unsigned(blocks)), dim3(kThreads), 0, stream},
                  WeightView(weight), first, count, wide, static_cast<uint4*>(out));
  });
}

}  // namespace hydrant::cuda
