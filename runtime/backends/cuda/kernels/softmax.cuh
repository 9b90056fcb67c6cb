// A softmax that is summed up key by key, and put together from parts.
#pragma once
#include "runtime/backends/cuda/portable.cuh"

namespace hydrant::cuda {

// The greatest logit so far and the sum of exp(logit - max). A NaN does not become the maximum, but
// the sum; logits of -inf weigh nothing, and where there are no others the sum is 0.
struct Softmax {
  float max = -INFINITY, sum = 0;

  // What the weights so far are multiplied with when the maximum becomes `higher`.
  __device__ float rescale(float higher) const { return higher == max ? 1.0f : expf(max - higher); }
  static __device__ float weight(float logit, float max) {
    return logit == -INFINITY ? 0.0f : expf(logit - max);
  }
  __device__ float log_sum() const { return max + logf(sum); }
};

}  // namespace hydrant::cuda
