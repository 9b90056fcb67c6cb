// What each key of a prompt received from its queries.
#include "runtime/backends/cuda/kernels/columns.cuh"
#include "runtime/backends/cuda/kernels/prompt_tile.cuh"

namespace hydrant::cuda {
namespace {

// A block for the keys of a run of one KV head, over all queries of the chunk that see one of them.
// A key's sum is one chain, in ascending order of queries and their heads.
template <class T, int kDim>
__global__ void __launch_bounds__(kTileThreads) summarize_kernel(Chunk c, Columns columns) {
  SHARED(TileRows<kDim>, queries, [1]);
  SHARED(TileRows<kDim>, keys, [1]);
  SHARED(float, weights, [kTile][kTile + 1]);
  const int row = int(threadIdx.x) / kTile, column = int(threadIdx.x) % kTile;
  const auto kv_head = int32_t(blockIdx.y);
  const int32_t dim = c.shape.head_dim, slot = int32_t(blockIdx.x) * kTile;
  const int32_t count = min(kTile, c.first + c.count - slot), key = slot + int32_t(threadIdx.x);
  const int64_t at = int64_t{kv_head} * columns.stride + key;
  const bool sums = int32_t(threadIdx.x) < count;  // this thread is a key's
  keys[0].load(static_cast<const T*>(KvHead<T>(c.kv, kv_head, dim).key(slot)), count, dim);
  float sum = sums ? columns.sum[at] : 0.0f, last = 0;
  bool has_last = false;
  for (int32_t first = max(0, slot - c.first) * c.group(); first < c.rows(); first += kTile) {
    __syncthreads();
    queries[0].load_queries(c, kv_head, first, dim);
    __syncthreads();
    const int32_t own = first + row;
    if (own < c.rows() && slot + column <= c.position(own))
      weights[row][column] = expf(dot(queries[0].at[row], keys[0].at[column], dim) -
                                  columns.lse[c.query(own, kv_head)]);
    __syncthreads();
    if (!sums) continue;
    for (int32_t r = 0; r < kTile && first + r < c.rows(); r++) {
      const int32_t position = c.position(first + r);
      if (key > position) continue;
      sum += weights[r][threadIdx.x];
      if (position != columns.length - 1) continue;
      last += weights[r][threadIdx.x];
      has_last = true;
    }
  }
  if (!sums) return;
  columns.sum[at] = sum;
  if (has_last) columns.last[at] = last;
}

}  // namespace

cudaError_t summarize_prompt(cudaStream_t stream, const SummarizePromptArgs& a, int capability) {
  if (on_tensor_cores(a.dtype, a.shape.head_dim, capability))
    return summarize_prompt_mma(stream, a);
  return with_kv_type(a.dtype, [&]<class T>(T) {
    return with_width(a.shape.head_dim, [&]<int kDim>(std::integral_constant<int, kDim>) {
      return each_scored(a, [&](const Chunk& chunk, const Columns& columns, int32_t keys) {
        const dim3 grid(unsigned((keys + kTile - 1) / kTile), unsigned(a.shape.kv_heads));
        return launch(summarize_kernel<T, kDim>, {grid, dim3(kTileThreads), 0, stream}, chunk,
                      columns);
      });
    });
  });
}

}  // namespace hydrant::cuda
