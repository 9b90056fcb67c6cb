#include "runtime/backends/cuda/kernels/elementwise.hpp"

#include "runtime/backends/cuda/kernels/activation.cuh"
#include "runtime/backends/cuda/kernels/report.cuh"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 256;

// A thread for each of `count` elements.
Launch over(int64_t count, cudaStream_t stream) {
  return {dim3(unsigned((count + kThreads - 1) / kThreads)), dim3(kThreads), 0, stream};
}
__device__ int64_t element() { return int64_t{blockIdx.x} * kThreads + threadIdx.x; }

struct Norm {
  NormKind kind;
  const float *in, *gain, *bias;
  float* out;  // may be in
  float epsilon;
  int64_t width;
};

// A block for each row.
__global__ void __launch_bounds__(kThreads) normalize_kernel(Norm n) {
  const float* const in = n.in + int64_t{blockIdx.x} * n.width;
  float* const out = n.out + int64_t{blockIdx.x} * n.width;
  float mean = 0;
  if (n.kind == NormKind::layer) {
    float sum = 0;
    for (int64_t i = threadIdx.x; i < n.width; i += kThreads) sum += in[i];
    mean = block_join<kThreads>(sum, Add{}) / float(n.width);
  }
  float squares = 0;
  for (int64_t i = threadIdx.x; i < n.width; i += kThreads)
    squares = fmaf(in[i] - mean, in[i] - mean, squares);
  squares = block_join<kThreads>(squares, Add{});
  const auto scale = float(1.0 / sqrt(double(squares) / double(n.width) + double(n.epsilon)));
  for (int64_t i = threadIdx.x; i < n.width; i += kThreads)
    out[i] = fmaf((in[i] - mean) * scale, n.gain[i], n.bias ? n.bias[i] : 0.0f);
}

__global__ void __launch_bounds__(kThreads)
    gate_kernel(Activation kind, const float* in, float* out, int64_t width, int64_t count) {
  const int64_t i = element();
  if (i >= count) return;
  const float* const row = in + i / width * 2 * width;
  out[i] = activate(kind, row[i % width]) * row[width + i % width];
}

struct Gather {
  const int32_t* indices;
  const float* in;
  float* out;
  int64_t rows, width, count;
  KernelFault* fault;
};
__global__ void __launch_bounds__(kThreads) gather_kernel(Gather g) {
  const int64_t i = element();
  if (i >= g.count) return;
  const int64_t to = i / g.width, from = g.indices[to];
  if (from < 0 || from >= g.rows)
    return report(g.fault, FaultKind::gather_index, int32_t(to), from, g.rows);
  g.out[i] = g.in[from * g.width + i % g.width];
}

__global__ void __launch_bounds__(kThreads)
    rotary_table_kernel(const int32_t* positions, const float* frequency, float* out,
                        int64_t frequencies, int64_t count) {
  const int64_t i = element();
  if (i >= count) return;
  const double angle = double(positions[i / frequencies]) * double(frequency[i % frequencies]);
  out[2 * i] = float(cos(angle));
  out[2 * i + 1] = float(sin(angle));
}

// The greatest so far; of equals the lower id.
struct Best {
  float value;
  int32_t id;
};
struct Better {
  __device__ Best operator()(Best a, Best b) const {
    return a.value > b.value || (a.value == b.value && a.id < b.id) ? a : b;
  }
};

// A block for each row. NaN never wins, but the sum meets it again; so it does +inf - +inf, and
// -inf - -inf where there is nothing else.
__global__ void __launch_bounds__(kThreads)
    summarize_logits_kernel(const float* logits, int64_t vocab, int32_t* best, float* lse) {
  const float* const row = logits + int64_t{blockIdx.x} * vocab;
  Best mine{-INFINITY, INT32_MAX};
  for (int64_t i = threadIdx.x; i < vocab; i += kThreads)
    if (row[i] == row[i]) mine = Better{}(mine, {row[i], int32_t(i)});
  const Best top = block_join<kThreads>(mine, Better{});
  double sum = 0;
  for (int64_t i = threadIdx.x; i < vocab; i += kThreads) sum += double(expf(row[i] - top.value));
  sum = block_join<kThreads>(sum, Add{});
  if (threadIdx.x != 0) return;
  const auto all = float(double(top.value) + log(sum));
  lse[blockIdx.x] = all;
  best[blockIdx.x] = all == all ? top.id : 0;  // an id that can be looked up
}

}  // namespace

cudaError_t normalize(cudaStream_t stream, const NormalizeArgs& a) {
  if (a.in.shape.count() == 0) return cudaSuccess;
  return launch(normalize_kernel, {dim3(unsigned(a.in.shape[0])), dim3(kThreads), 0, stream},
                Norm{a.kind, a.in.as<float>(), a.gain.as<float>(), a.bias.as<float>(),
                     a.out.as<float>(), a.epsilon, a.in.shape[1]});
}

cudaError_t gate(cudaStream_t stream, const GateArgs& a) {
  const int64_t count = a.out.shape.count();
  if (count == 0) return cudaSuccess;
  return launch(gate_kernel, over(count, stream), a.kind, a.in.as<float>(), a.out.as<float>(),
                a.out.shape[1], count);
}

cudaError_t gather(cudaStream_t stream, KernelFault* fault, const GatherArgs& a) {
  const int64_t count = a.out.shape.count();
  if (count == 0) return cudaSuccess;
  return launch(gather_kernel, over(count, stream),
                Gather{a.indices.as<int32_t>(), a.in.as<float>(), a.out.as<float>(), a.in.shape[0],
                       a.in.shape[1], count, fault});
}

cudaError_t rotary_table(cudaStream_t stream, const RotaryTableArgs& a) {
  const int64_t count = a.out.shape[0] * a.out.shape[1];
  if (count == 0) return cudaSuccess;
  return launch(rotary_table_kernel, over(count, stream), a.positions.as<int32_t>(),
                a.inverse_frequency.as<float>(), a.out.as<float>(), a.out.shape[1], count);
}

cudaError_t summarize_logits(cudaStream_t stream, const SummarizeLogitsArgs& a) {
  if (a.logits.shape[0] == 0) return cudaSuccess;
  return launch(summarize_logits_kernel,
                {dim3(unsigned(a.logits.shape[0])), dim3(kThreads), 0, stream},
                a.logits.as<float>(), a.logits.shape[1], a.best.as<int32_t>(), a.lse.as<float>());
}

}  // namespace hydrant::cuda
