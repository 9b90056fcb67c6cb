#include "runtime/backends/cuda/cuda_errors.hpp"

#include <cuda_runtime_api.h>

#include "runtime/base/error.hpp"

namespace hydrant::cuda {
namespace {

// 13000 -> "13.0"
std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

}  // namespace

void check(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return;
  if (error == cudaErrorMemoryAllocation)
    fail(Fault::out_of_memory, "cuda: {}: the device has no memory left", what);
  fail(Fault::io, "cuda: {}: {} ({}); the cause may be work that was enqueued before", what,
       cudaGetErrorString(error), cudaGetErrorName(error));
}

void check_opened(cudaError_t error, int device) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // it would be the next call's, too
  if (error == cudaErrorMemoryAllocation)
    fail(Fault::out_of_memory, "device: cuda:{}: no memory left there for one more program",
         device);
  if (error == cudaErrorDevicesUnavailable)
    fail(Fault::io,
         "device: cuda:{}: it takes no program, or no other beside the one that has it "
         "(its compute mode: nvidia-smi -q -d COMPUTE)",
         device);
  if (error == cudaErrorNoKernelImageForDevice) {
    const int sm = capability(device);
    fail(Fault::bad_config,
         "device: cuda:{}: this program was built without code for compute capability {}.{} "
         "(HYDRANT_CUDA_ARCHITECTURES)",
         device, sm / 10, sm % 10);
  }
  fail(Fault::io, "device: cuda:{}: it cannot be opened: {} ({})", device,
       cudaGetErrorString(error), cudaGetErrorName(error));
}

int capability(int device) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "the device's capability");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
        "the device's capability");
  return major * 10 + minor;
}

int multiprocessors(int device) {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
        "the device's multiprocessors");
  return count;
}

std::string trouble() {
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return "no NVIDIA driver is installed";
  if (driver / 1000 < CUDART_VERSION / 1000)
    return fmt::format("the NVIDIA driver is for CUDA {}, this program needs one for {} or later",
                       version(driver), version(CUDART_VERSION / 1000 * 1000));
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    cudaGetLastError();  // it would be the next call's, too
    return fmt::format("the NVIDIA driver does not answer: {}", cudaGetErrorString(error));
  }
  for (int device = 0; device < count; device++)
    if (capability(device) >= kLeastCapability) return "";
  return count == 0 ? "no NVIDIA device"
                    : fmt::format("no NVIDIA device of compute capability {}.{} or later",
                                  kLeastCapability / 10, kLeastCapability % 10);
}

std::vector<std::string> describe_devices() {
  int driver = 0, count = 0;
  std::vector<std::string> lines;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return lines;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) cudaGetLastError();  // it would be the next call's, too
  if (error == cudaErrorNoDevice) return lines;
  check(error, "the number of devices");
  for (int device = 0; device < count; device++) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "a device's properties");
    lines.push_back(fmt::format("{}, sm_{}, {} MiB", static_cast<const char*>(properties.name),
                                capability(device), properties.totalGlobalMem >> 20));
  }
  return lines;
}

}  // namespace hydrant::cuda
