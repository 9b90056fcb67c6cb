// Attention over prompts, and what it gives to each key.
#pragma once
#include <driver_types.h>

#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

cudaError_t attend_prompt(cudaStream_t stream, const AttendPromptArgs& args);
cudaError_t summarize_prompt(cudaStream_t stream, const SummarizePromptArgs& args);

}  // namespace hydrant::cuda
