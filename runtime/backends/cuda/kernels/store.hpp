// Putting a step's and a prompt's keys and values where they stay.
#pragma once
#include <driver_types.h>

#include "runtime/backends/cuda/kernel_fault.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

cudaError_t store_decode(cudaStream_t stream, KernelFault* fault, const StoreDecodeArgs& args);
cudaError_t store_prompt(cudaStream_t stream, const StorePromptArgs& args);

// Chooses the prompt's positions for each KV head's slots, and their scores: the first half of
// store_prompt.
cudaError_t select_prompt(cudaStream_t stream, const StorePromptArgs& args);

}  // namespace hydrant::cuda
