// Scores and victims of a decode step.
#pragma once
#include <driver_types.h>

#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

cudaError_t settle(cudaStream_t stream, const SettleArgs& args);

}  // namespace hydrant::cuda
