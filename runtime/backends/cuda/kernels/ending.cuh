// What ends an output of a product.
#pragma once
#include "runtime/backends/cuda/kernels/activation.cuh"
#include "runtime/backends/cuda/kernels/linear.hpp"

namespace hydrant::cuda {

__device__ inline void end(const Ending& e, int64_t token, int64_t output, float sum) {
  const int64_t column = e.first + output, at = token * e.width + column;
  float value = activate(e.after, e.bias ? sum + e.bias[column] : sum);
  if (e.residual) value += e.residual[at];
  e.out[at] = value;
}

}  // namespace hydrant::cuda
