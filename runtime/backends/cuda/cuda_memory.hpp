// Memory that the CUDA runtime gives, as buffers.
#pragma once
#include <cstddef>
#include <string_view>

#include "runtime/device/buffer.hpp"

namespace hydrant::cuda {

// Of the chosen device; throws out_of_memory naming `what`, with what is left.
Buffer allocate_device(size_t bytes, std::string_view what);

// Of the host, where kernels reach it and copies run beside the host. Throws out_of_memory naming
// `what` and the bytes where the system has not so much, or does not let it be pinned.
Buffer allocate_pinned(size_t bytes, std::string_view what);

}  // namespace hydrant::cuda
