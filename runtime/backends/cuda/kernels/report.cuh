// Kernels' findings (kernel_fault.hpp).
#pragma once
#include "runtime/backends/cuda/kernel_fault.hpp"
#include "runtime/backends/cuda/portable.cuh"

namespace hydrant::cuda {

// The first finding stays.
__device__ inline void report(KernelFault* fault, FaultKind kind, int32_t index, int64_t found,
                              int64_t limit) {
  if (atomicCAS(&fault->kind, 0, int32_t(kind)) != 0) return;
  fault->index = index;
  fault->found = found;
  fault->limit = limit;
}

}  // namespace hydrant::cuda
