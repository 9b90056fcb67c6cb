// Attention over prompts, and what it gives to each key.
#pragma once
#include <driver_types.h>

#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

// By tensor cores where a card of this compute capability (80: sm_80) has them for such elements,
// and there are kernels for heads of this size; else by plain arithmetic.
cudaError_t attend_prompt(cudaStream_t stream, const AttendPromptArgs& args, int capability);
cudaError_t summarize_prompt(cudaStream_t stream, const SummarizePromptArgs& args, int capability);

// Turing's have no bf16, whose range f16 does not hold: a bf16 cache there, which nobody gets
// unasked, is attended plainly.
bool on_tensor_cores(DType dtype, int32_t head_dim, int capability);
cudaError_t attend_prompt_mma(cudaStream_t stream, const AttendPromptArgs& args);
cudaError_t summarize_prompt_mma(cudaStream_t stream, const SummarizePromptArgs& args);

}  // namespace hydrant::cuda
