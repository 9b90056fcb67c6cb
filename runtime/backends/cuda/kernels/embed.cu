#include "runtime/backends/cuda/kernels/embed.hpp"

#include "runtime/backends/cuda/kernels/report.cuh"
#include "runtime/backends/cuda/kernels/weights.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 128;

struct Lookup {
  const int32_t* indices;
  int32_t offset;
  WeightView table;
  int64_t rows;
  bool accumulate, partial;
  float* out;
  KernelFault* fault;
};

// A block for each token.
template <DType format>
__global__ void __launch_bounds__(kThreads) embed_kernel(Lookup l) {
  const int64_t token = blockIdx.x, row = int64_t{l.indices[token]} + l.offset;
  if (row < 0 || row >= l.rows) {
    if (!l.partial && threadIdx.x == 0)
      report(l.fault, FaultKind::embedding_row, int32_t(token), row, l.rows);
    return;
  }
  float* const out = l.out + token * l.table.k;
  for (int64_t i = threadIdx.x; i < l.table.k; i += kThreads) {
    const float value = weight_at<format>(l.table, row, i);
    out[i] = l.accumulate ? out[i] + value : value;
  }
}

}  // namespace

cudaError_t embed(cudaStream_t stream, KernelFault* fault, const EmbedArgs& a) {
  const int64_t tokens = a.indices.shape[0];
  if (tokens == 0) return cudaSuccess;
  const Lookup lookup{
      a.indices.as<int32_t>(), a.offset, WeightView(a.table), a.table.n, a.accumulate, a.partial,
      a.out.as<float>(),       fault};
  return with_format(a.table.format, [&]<DType format>() {
    return launch(embed_kernel<format>, {dim3(unsigned(tokens)), dim3(kThreads), 0, stream},
                  lookup);
  });
}

}  // namespace hydrant::cuda
