#include "runtime/backends/cuda/kernels/columns.cuh"
#include "runtime/backends/cuda/kernels/prompt_mma.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = kBlockRows / kMmaRows * kWarp;

template <int kDim>
constexpr int kKeysOfBlock = kDim > 128 ? 32 : 64;

// A block for some keys of one KV head, over all queries of the chunk that see one of them, 64 at a
// time: their logits are those of attention, bit by bit. A key's sum is one chain, in ascending
// order of queries and their heads; what a query does not see adds 0, and changes nothing.
template <class T, int kDim>
__global__ void __launch_bounds__(kThreads) summarize_mma_kernel(Chunk c, Columns columns) {
  using S = MmaShape<kDim>;
  constexpr int kKeys = kKeysOfBlock<kDim>, kOctets = kKeys / 8;
  using Keys = SharedRows<T, kKeys, kDim>;
  SHARED(Keys, keys, [1]);
  SHARED(float, weights, [kBlockRows][kKeys + 8]);
  const int thread = int(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const auto kv_head = int32_t(blockIdx.y);
  const int32_t slot = int32_t(blockIdx.x) * kKeys, end = c.first + c.count;
  keys[0].template copy<kThreads>(KvHead<T>(c.kv, kv_head, kDim), slot, end, false);
  end_copies();
  const int64_t at = int64_t{kv_head} * columns.stride + slot + thread;
  const bool sums = thread < kKeys && slot + thread < end;  // this thread is a key's
  float sum = sums ? columns.sum[at] : 0.0f, last = 0;
  const int32_t last_query = (columns.length - 1 - c.first) * c.group();  // its first head's row
  wait_for_copies<0>();
  __syncthreads();
  for (int32_t first = max(0, slot - c.first) * c.group(); first < c.rows(); first += kBlockRows) {
    const int32_t row0 = first + warp * kMmaRows;
    MatrixC logits[kOctets];
    MmaQueries<T, S::kWidth> queries;
    queries.load(c, kv_head, row0, 0);
    queries.template multiply<kOctets, kDim + 8>(keys_of_lane(keys[0], 0), logits);
    if constexpr (S::kParts > 1) {
      MatrixC others[kOctets];
      queries.load(c, kv_head, row0, S::kWidth);
      queries.template multiply<kOctets, kDim + 8>(keys_of_lane(keys[0], S::kWidth), others);
      for (int i = 0; i < 4 * kOctets; i++) logits[i / 4].at[i % 4] += others[i / 4].at[i % 4];
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int32_t row = row0 + lane / 4 + 8 * r;
      const bool there = row < c.rows();
      const int32_t visible = there ? c.position(row) + 1 : 0;
      const float lse = there ? columns.lse[c.query(row, kv_head)] : 0.0f;
#pragma unroll
      for (int octet = 0; octet < kOctets; octet++) {
        const int key = octet * 8 + lane % 4 * 2;
        float2 weight{};
        if (slot + key < visible) weight.x = expf(logits[octet].at[2 * r] - lse);
        if (slot + key + 1 < visible) weight.y = expf(logits[octet].at[2 * r + 1] - lse);
        *reinterpret_cast<float2*>(&weights[row - first][key]) = weight;
      }
    }
    __syncthreads();
    if (sums) {
      const int32_t rows = min(kBlockRows, c.rows() - first);
      for (int32_t r = 0; r < rows; r++) {
        sum += weights[r][thread];
        if (first + r >= last_query) last += weights[r][thread];
      }
    }
    __syncthreads();
  }
  if (!sums) return;
  columns.sum[at] = sum;
  if (last_query < c.rows()) columns.last[at] = last;
}

}  // namespace

cudaError_t summarize_prompt_mma(cudaStream_t stream, const SummarizePromptArgs& a) {
  return with_mma_shape(a.dtype, a.shape.head_dim, [&]<class T, int kDim>() {
    return each_scored(a, [&](const Chunk& chunk, const Columns& columns, int32_t keys) {
      constexpr int kKeys = kKeysOfBlock<kDim>;
      const dim3 grid(unsigned((keys + kKeys - 1) / kKeys), unsigned(a.shape.kv_heads));
      return launch(summarize_mma_kernel<T, kDim>, {grid, dim3(kThreads), 0, stream}, chunk,
                    columns);
    });
  });
}

}  // namespace hydrant::cuda
