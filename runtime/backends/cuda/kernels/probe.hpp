#pragma once
#include <driver_types.h>

namespace hydrant::cuda {

// cudaErrorNoKernelImageForDevice where this build has no code for the chosen device.
cudaError_t probe();

}  // namespace hydrant::cuda
