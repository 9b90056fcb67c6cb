// Ops::linear: which way a product goes, and the memory it takes on its way.
#pragma once
#include <cstddef>

#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

class CudaStream;

// What a product of `tokens` rows of `width` takes, at most.
size_t linear_bytes(int64_t tokens, int64_t width);
// On a card of so many multiprocessors.
void linear(CudaStream& stream, const LinearArgs& args, int32_t multiprocessors);

}  // namespace hydrant::cuda
