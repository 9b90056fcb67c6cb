#include "runtime/backends/cuda/kernels/linear.hpp"

#include "runtime/backends/cuda/kernels/ending.cuh"
#include "runtime/backends/cuda/kernels/weights.cuh"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 256, kMultiplyThreads = 128;

Launch over(int64_t count, cudaStream_t stream) {
  return {dim3(unsigned((count + kThreads - 1) / kThreads)), dim3(kThreads), 0, stream};
}
__device__ int64_t element() { return int64_t{blockIdx.x} * kThreads + threadIdx.x; }

__global__ void __launch_bounds__(kThreads)
    round_bf16_kernel(const float* in, float* out, int64_t count) {
  const int64_t i = element();
  if (i < count) out[i] = to_float(from_float<__nv_bfloat16>(in[i]));
}

__global__ void __launch_bounds__(kThreads)
    to_bf16_kernel(const float* in, __nv_bfloat16* out, int64_t count) {
  const int64_t i = element();
  if (i < count) out[i] = from_float<__nv_bfloat16>(in[i]);
}

// A warp for kRows outputs, which share the loads of the tokens and keep the sums of all: a sum is
// one chain for each lane, then the lanes', whatever the number of tokens and rows. kAhead times 8
// weights of each row are under way. The rows of a panel that are past the last output are there.
template <DType format, int kRows, int kTokens, int kAhead>
__global__ void __launch_bounds__(kMultiplyThreads)
    multiply_kernel(Rows in, WeightView weight, int64_t outputs, Ending ending) {
  static_assert(kPanelRows % kRows == 0);
  constexpr int kWarps = kMultiplyThreads / kWarp;
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t output = (int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp) * kRows;
  if (output >= outputs) return;
  float sum[kRows * kTokens] = {};
  const auto more = [&](int t) { return kTokens == 1 || t < in.rows; };
  if (weight.k % 8 == 0) {
    const int64_t chunks = weight.k / 8;
    for (int64_t first = lane; first < chunks; first += kAhead * kWarp) {
      float w[kAhead][kRows][8], x[8];
      for (int a = 0; a < kAhead; a++)
        for (int r = 0; r < kRows; r++)
          if (const int64_t c = first + a * kWarp; c < chunks)
            unpack8<format>(weight, output + r, c, w[a][r]);
      for (int a = 0; a < kAhead; a++) {
        const int64_t c = first + a * kWarp;
        if (c >= chunks) break;
        for (int t = 0; t < kTokens && more(t); t++) {
          load8(in.data + t * in.width + c * 8, x);
          for (int r = 0; r < kRows; r++)
            for (int i = 0; i < 8; i++)
              sum[r * kTokens + t] = fmaf(w[a][r][i], x[i], sum[r * kTokens + t]);
        }
      }
    }
  } else {
    for (int64_t i = lane; i < weight.k; i += kWarp)
      for (int r = 0; r < kRows; r++) {
        const float w = weight_at<format>(weight, output + r, i);
        for (int t = 0; t < kTokens; t++)
          if (more(t))
            sum[r * kTokens + t] = fmaf(w, in.data[t * in.width + i], sum[r * kTokens + t]);
      }
  }
  const float all = warp_sums(sum, lane);
  constexpr int kShare = kWarp / (kRows * kTokens);  // lanes that have the same sum
  const int64_t r = lane / kShare / kTokens, t = lane / kShare % kTokens;
  if (lane % kShare == 0 && t < in.rows && output + r < outputs) end(ending, t, output + r, all);
}

template <DType format>
__global__ void __launch_bounds__(kThreads)
    unpack_kernel(WeightView weight, int64_t first, int64_t count, float* out) {
  const int64_t i = element();
  const bool wide = weight.k % 8 == 0;
  if (i >= (wide ? count / 8 : count)) return;
  if (!wide) {
    out[i] = weight_at<format>(weight, first + i / weight.k, i % weight.k);
    return;
  }
  const int64_t chunks = weight.k / 8;
  float v[8];
  unpack8<format>(weight, first + i / chunks, i % chunks, v);
  reinterpret_cast<float4*>(out)[2 * i] = {v[0], v[1], v[2], v[3]};
  reinterpret_cast<float4*>(out)[2 * i + 1] = {v[4], v[5], v[6], v[7]};
}

__global__ void __launch_bounds__(kThreads)
    finish_kernel(Rows sums, const float* factors, Ending ending) {
  const int64_t i = element();
  if (i >= sums.rows * sums.width) return;
  const int64_t token = i / sums.width;
  end(ending, token, i % sums.width, factors ? sums.data[i] * factors[token] : sums.data[i]);
}

template <DType format, int kRows, int kTokens, int kAhead>
cudaError_t multiply_as(cudaStream_t stream, const Rows& in, const Weight& weight,
                        const Ending& ending) {
  constexpr int64_t kOutputs = kMultiplyThreads / kWarp * kRows;
  return launch(
      multiply_kernel<format, kRows, kTokens, kAhead>,
      {dim3(unsigned((weight.n + kOutputs - 1) / kOutputs)), dim3(kMultiplyThreads), 0, stream}, in,
      WeightView(weight), weight.n, ending);
}

}  // namespace

cudaError_t round_bf16(cudaStream_t stream, const Rows& in, float* out) {
  const int64_t count = in.rows * in.width;
  return launch(round_bf16_kernel, over(count, stream), in.data, out, count);
}

cudaError_t to_bf16(cudaStream_t stream, const Rows& in, void* out) {
  const int64_t count = in.rows * in.width;
  return launch(to_bf16_kernel, over(count, stream), in.data, static_cast<__nv_bfloat16*>(out),
                count);
}

cudaError_t multiply(cudaStream_t stream, const Rows& in, const Weight& weight,
                     const Ending& ending) {
  return with_format(weight.format, [&]<DType format>() {
    if (in.rows == 1) return multiply_as<format, 2, 1, 2>(stream, in, weight, ending);
    if (in.rows <= 4) return multiply_as<format, 4, 4, 1>(stream, in, weight, ending);
    return multiply_as<format, 4, kFewTokens, 1>(stream, in, weight, ending);
  });
}

cudaError_t unpack(cudaStream_t stream, const Weight& weight, int64_t first, int64_t count,
                   float* out) {
  const int64_t elements = count * weight.k;
  return with_format(weight.format, [&]<DType format>() {
    return launch(unpack_kernel<format>, over(weight.k % 8 == 0 ? elements / 8 : elements, stream),
                  WeightView(weight), first, elements, out);
  });
}

cudaError_t finish(cudaStream_t stream, const Rows& sums, const float* factors,
                   const Ending& ending) {
  return launch(finish_kernel, over(sums.rows * sums.width, stream), sums, factors, ending);
}

}  // namespace hydrant::cuda
