// The activation functions, each within a few roundings, and right for the largest inputs.
#pragma once
#include "runtime/backends/cuda/portable.cuh"
#include "runtime/device/kinds.hpp"

namespace hydrant::cuda {

__device__ inline float activate(Activation kind, float x) {
  switch (kind) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x > 0 || x != x ? x : 0;
    case Activation::silu:
      return x / (1 + expf(-x));
    case Activation::gelu:
      return 0.5f * x * erfcf(x * -0.707106781f);
    case Activation::gelu_tanh: {
      // 1 + tanh(u) = 2 / (1 + exp(-2u)), which does not cancel
      const float u = 0.797884561f * x * fmaf(0.044715f * x, x, 1.0f);
      return x / (1 + expf(-2 * u));
    }
  }
  return x;
}

}  // namespace hydrant::cuda
