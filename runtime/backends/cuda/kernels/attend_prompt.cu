#include "runtime/backends/cuda/kernels/attend_prompt.hpp"

#include <algorithm>

#include "runtime/backends/cuda/kernels/prompt_tile.cuh"
#include "runtime/backends/cuda/kernels/softmax.cuh"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kMmaOfF16 = 75, kMmaOfBf16 = 80;  // compute capabilities

// Over the sixteen lanes of a tile's row.
template <class Join>
__device__ float row_join(float value, const Join& join) {
  for (int lanes = kTile / 2; lanes > 0; lanes /= 2)
    value = join(value, __shfl_xor_sync(kFullWarp, value, lanes, kTile));
  return value;
}

// A block for a tile of queries of one KV head. Keys come in runs from slot 0 on, so that a query's
// bits do not depend on its chunk or its neighbours. A thread has one logit of the tile, and of its
// row's output every sixteenth component.
template <class T, int kDim>
__global__ void __launch_bounds__(kTileThreads, 2)
    attend_prompt_kernel(Chunk c, float* out, float* lse) {
  SHARED(TileRows<kDim>, queries, [1]);
  SHARED(TileRows<kDim>, keys, [1]);  // then values
  SHARED(float, weights, [kTile][kTile + 1]);
  const int row = int(threadIdx.x) / kTile, column = int(threadIdx.x) % kTile;
  const auto kv_head = int32_t(blockIdx.y);
  const int32_t dim = c.shape.head_dim, first = int32_t(blockIdx.x) * kTile;
  const int32_t own = first + row, visible = c.position(own) + 1;
  const int32_t last = c.position(min(first + kTile, c.rows()) - 1) + 1;  // keys of the tile
  const KvHead<T> kv(c.kv, kv_head, dim);
  queries[0].load_queries(c, kv_head, first, dim);

  Softmax softmax;
  float sums[kDim / kTile] = {};
  for (int32_t slot = 0; slot < last; slot += kTile) {
    const int32_t count = min(kTile, last - slot);
    __syncthreads();
    keys[0].load(static_cast<const T*>(kv.key(slot)), count, dim);
    __syncthreads();
    const float logit =
        slot + column < visible ? dot(queries[0].at[row], keys[0].at[column], dim) : -INFINITY;
    const float max = fmaxf(softmax.max, row_join(logit, Most{}));
    const float old = softmax.rescale(max), weight = Softmax::weight(logit, max);
    softmax.max = max;
    softmax.sum = fmaf(softmax.sum, old, row_join(weight, Add{}));
    weights[row][column] = weight;
    __syncthreads();
    keys[0].load(static_cast<const T*>(kv.value(slot)), count, dim);
    __syncthreads();
    const int32_t seen = min(kTile, visible - slot);  // what comes later has no weight, not even 0
    for (int i = 0; i < kDim / kTile; i++) {
      const int32_t e = column + i * kTile;
      if (e >= dim) break;
      float sum = sums[i] * old;
      for (int32_t k = 0; k < seen; k++) sum = fmaf(weights[row][k], keys[0].at[k][e], sum);
      sums[i] = sum;
    }
  }
  if (own >= c.rows()) return;
  const int64_t query = c.query(own, kv_head);
  for (int i = 0; i < kDim / kTile; i++)
    if (column + i * kTile < dim) out[query * dim + column + i * kTile] = sums[i] / softmax.sum;
  if (column == 0) lse[query] = softmax.log_sum();
}

}  // namespace

bool on_tensor_cores(DType dtype, int32_t head_dim, int capability) {
  const bool elements = dtype == DType::f16 ? capability >= kMmaOfF16
                                            : dtype == DType::bf16 && capability >= kMmaOfBf16;
  const auto sizes = {64, 80, 96, 128, 256};
  return elements && std::find(sizes.begin(), sizes.end(), head_dim) != sizes.end();
}

cudaError_t attend_prompt(cudaStream_t stream, const AttendPromptArgs& a, int capability) {
  if (on_tensor_cores(a.dtype, a.shape.head_dim, capability)) return attend_prompt_mma(stream, a);
  return with_kv_type(a.dtype, [&]<class T>(T) {
    return with_width(a.shape.head_dim, [&]<int kDim>(std::integral_constant<int, kDim>) {
      for (const PromptSegment& s : a.segments) {
        const int32_t rows = s.segment.count * (a.shape.heads / a.shape.kv_heads);
        const dim3 grid(unsigned((rows + kTile - 1) / kTile), unsigned(a.shape.kv_heads));
        const cudaError_t error =
            launch(attend_prompt_kernel<T, kDim>, {grid, dim3(kTileThreads), 0, stream},
                   chunk_of(a, s), a.out.as<float>(), a.lse.as<float>());
        if (error != cudaSuccess) return error;
      }
      return cudaSuccess;
    });
  });
}

}  // namespace hydrant::cuda
