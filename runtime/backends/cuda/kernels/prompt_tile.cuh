// Sixteen queries by sixteen keys, a thread for each pair: what attention over a prompt and the
// column sums share, for elements of f32 and for head sizes that prompt_mma.cuh has no kernels for.
#pragma once
#include "runtime/backends/cuda/kernels/prompt_chunk.cuh"

namespace hydrant::cuda {

inline constexpr int kTile = 16, kTileThreads = kTile * kTile;
static_assert(kTile == kRunSlots);

// Vectors of kDim or fewer components, padded so that a column's elements lie in different banks.
template <int kDim>
struct TileRows {
  float at[kTile][kDim + 1];

  // Queries, scaled; rows from `rows` on are zero.
  __device__ void load_queries(const Chunk& c, int32_t kv_head, int32_t first, int32_t dim) {
    for (int32_t i = int32_t(threadIdx.x); i < kTile * dim; i += kTileThreads) {
      const int32_t row = first + i / dim;
      at[i / dim][i % dim] =
          row < c.rows() ? c.q[c.query(row, kv_head) * dim + i % dim] * c.scale : 0.0f;
    }
  }
  // The keys or values of a run, of which the first `count` are there.
  template <class T>
  __device__ void load(const T* from, int32_t count, int32_t dim) {
    for (int32_t i = int32_t(threadIdx.x); i < kTile * dim / 8; i += kTileThreads) {
      float v[8] = {};
      if (i * 8 / dim < count) load8(from + i * 8, v);
      for (int j = 0; j < 8; j++) at[i * 8 / dim][i * 8 % dim + j] = v[j];
    }
  }
};

template <int kDim>
__device__ float dot(const float (&a)[kDim], const float (&b)[kDim], int32_t dim) {
  float sum = 0;
  for (int32_t e = 0; e < dim; e++) sum = fmaf(a[e], b[e], sum);
  return sum;
}

// Calls f with the tile width that holds the head: std::integral_constant.
template <class F>
cudaError_t with_width(int32_t dim, const F& f) {
  if (dim <= 64) return f(std::integral_constant<int, 64>{});
  if (dim <= 128) return f(std::integral_constant<int, 128>{});
  return f(std::integral_constant<int, 256>{});
}

}  // namespace hydrant::cuda
