// The parts of a product: rounding its input, few tokens in one pass over the weights, weights as
// f32 tiles for cuBLAS (as f16: linear_f16.hpp), and what ends an output.
#pragma once
#include <driver_types.h>

#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

// A matrix of f32, rows one behind another.
struct Rows {
  const float* data;
  int64_t rows, width;
};

// What happens to output j of a part whose outputs begin at `first` of `width`.
struct Ending {
  const float *bias = nullptr, *residual = nullptr;
  Activation after = Activation::none;
  float* out = nullptr;
  int64_t first = 0, width = 0;
};

// The most tokens that multiply() takes.
inline constexpr int64_t kFewTokens = 8;

// in, rounded to bf16, as f32.
cudaError_t round_bf16(cudaStream_t stream, const Rows& in, float* out);
// The same as bf16.
cudaError_t to_bf16(cudaStream_t stream, const Rows& in, void* out);
// in . W^T and the ending, for at most kFewTokens rows; W is read once.
cudaError_t multiply(cudaStream_t stream, const Rows& in, const Weight& weight,
                     const Ending& ending);
// Rows [first, first + count) of W as f32.
cudaError_t unpack(cudaStream_t stream, const Weight& weight, int64_t first, int64_t count,
                   float* out);
// The ending of sums [tokens, count], which are the outputs from ending.first on; a token's are
// first multiplied by its factor, where there are factors.
cudaError_t finish(cudaStream_t stream, const Rows& sums, const float* factors,
                   const Ending& ending);

}  // namespace hydrant::cuda
