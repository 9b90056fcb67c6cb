// What the CUDA runtime and cuBLAS return, as the project's errors.
#pragma once
#include <driver_types.h>

#include <string>
#include <string_view>
#include <vector>

namespace hydrant::cuda {

// Throws io, or out_of_memory, unless all went well. `what` names the call or operation. CUDA tells
// of a kernel's fault at some later call: the message says so.
void check(cudaError_t error, std::string_view what);

// The same for the first calls on a device, which make a context there: throws io where another
// process has it to itself or it takes none, out_of_memory, or bad_config where this program has no
// code for its architecture.
void check_opened(cudaError_t error, int device);

// "" when a device can be used; else one line that says why not: no driver, an old one and the
// version that is needed, no device, or none that is new enough.
std::string trouble();

// Of each device: name, architecture and memory; none where there is no driver or it knows of none.
// Throws io where it does not say.
std::vector<std::string> describe_devices();

// The architectures that kernels are compiled for begin here: 7.5, T4.
inline constexpr int kLeastCapability = 75;
inline constexpr int kTensorCoresTakeBf16 = 80;  // from this compute capability on
int capability(int device);                      // 80 for 8.0; throws io
int multiprocessors(int device);

}  // namespace hydrant::cuda
