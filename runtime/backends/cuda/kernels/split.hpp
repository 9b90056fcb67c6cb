// From the joint projection to rotated queries and to keys and values in their runs.
#pragma once
#include <driver_types.h>

#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

cudaError_t split_decode(cudaStream_t stream, const SplitDecodeArgs& args);
cudaError_t split_prompt(cudaStream_t stream, const SplitPromptArgs& args);

}  // namespace hydrant::cuda
