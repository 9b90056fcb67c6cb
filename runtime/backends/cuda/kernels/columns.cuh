// Where the column sums of a prompt go.
#pragma once
#include "runtime/backends/cuda/kernels/attend_prompt.hpp"
#include "runtime/backends/cuda/kernels/prompt_chunk.cuh"

namespace hydrant::cuda {

struct Columns {
  const float* lse;   // [token of the step, head]
  float *sum, *last;  // [kv_head, stride]
  int32_t stride, length;
};

// Calls launch(chunk, columns, keys that it sees) for each segment that is scored.
template <class F>
cudaError_t each_scored(const SummarizePromptArgs& a, const F& launch_chunk) {
  for (const PromptSegment& s : a.segments) {
    if (!s.sum) continue;
    const cudaError_t error = launch_chunk(
        chunk_of(a, s), Columns{a.lse.as<float>(), s.sum, s.last, s.stats_stride, s.length},
        s.segment.first + s.segment.count);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace hydrant::cuda
