// Operations over rows that no matrix or cache takes part in.
#pragma once
#include <driver_types.h>

#include "runtime/backends/cuda/kernel_fault.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

// Each enqueues what ops.hpp says and returns what launching came to.
cudaError_t normalize(cudaStream_t stream, const NormalizeArgs& args);
cudaError_t gate(cudaStream_t stream, const GateArgs& args);
cudaError_t gather(cudaStream_t stream, KernelFault* fault, const GatherArgs& args);
cudaError_t rotary_table(cudaStream_t stream, const RotaryTableArgs& args);
cudaError_t summarize_logits(cudaStream_t stream, const SummarizeLogitsArgs& args);

}  // namespace hydrant::cuda
