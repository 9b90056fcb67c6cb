// The queries of a chunk of one prompt as the kernels see them: the query heads of a KV head stand
// one behind another, position by position.
#pragma once
#include "runtime/backends/cuda/kernels/kv.cuh"

namespace hydrant::cuda {

struct Chunk {
  const float* q;  // [token of the step, head, dim]
  KvRuns kv;
  HeadShape shape;
  int32_t token, first, count;
  float scale;

  __device__ int32_t group() const { return shape.heads / shape.kv_heads; }
  __device__ int32_t rows() const { return count * group(); }  // of one KV head
  __device__ int32_t position(int32_t row) const { return first + row / group(); }
  // [token, head] of a row.
  __device__ int64_t query(int32_t row, int32_t kv_head) const {
    return (int64_t{token} + row / group()) * shape.heads + kv_head * group() + row % group();
  }
};

// Args: of attention or of the column sums.
template <class Args>
Chunk chunk_of(const Args& a, const PromptSegment& s) {
  return {a.q.template as<float>(), s.kv,   a.shape, s.segment.token, s.segment.first,
          s.segment.count,          a.scale};
}

}  // namespace hydrant::cuda
