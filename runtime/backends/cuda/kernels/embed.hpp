// Rows of an embedding table.
#pragma once
#include <driver_types.h>

#include "runtime/backends/cuda/kernel_fault.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

cudaError_t embed(cudaStream_t stream, KernelFault* fault, const EmbedArgs& args);

}  // namespace hydrant::cuda
