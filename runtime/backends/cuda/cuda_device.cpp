#include "runtime/backends/cuda/cuda_device.hpp"

#include <cuda_runtime_api.h>

#include "runtime/backends/cuda/cuda_errors.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cuda {

CudaDevice::CudaDevice(const DeviceOptions& options) : index_(options.index) {
  if (!options.isa.empty())
    fail(Fault::bad_config, "isa: '{}' is the CPU's; a card has only its own", options.isa);
  select();
  const int sm = capability(index_);
  if (sm < kLeastCapability)
    fail(Fault::bad_config, "device: cuda:{}: compute capability {}.{}, expected {}.{} or later",
         index_, sm / 10, sm % 10, kLeastCapability / 10, kLeastCapability % 10);
  architecture_ = fmt::format("sm_{}", sm);
  description_ = fmt::format("cuda:{} {}", index_, describe_devices().at(size_t(index_)));
}

void CudaDevice::select() const { check(cudaSetDevice(index_), "the chosen device"); }

Buffer CudaDevice::allocate(Memory memory, size_t bytes, std::string_view what) {
  if (bytes == 0) return {};
  if (memory == Memory::pageable) return host_.allocate(memory, bytes, what);
  select();
  return memory == Memory::device ? allocate_device(bytes, what) : pin(bytes, what);
}

// Kernels read and write it in place, so plain memory cannot take its part here; where it is only
// copied, allocate_for_copies() lets it.
Buffer CudaDevice::pin(size_t bytes, std::string_view what) {
  if (const size_t left = host_.available(); bytes > left)
    fail(Fault::out_of_memory, "{}: {} bytes wanted, {} available", what, bytes, left);
  void* data = nullptr;
  const cudaError_t error = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it would be the next call's, too
    fail(Fault::out_of_memory, "{}: the system does not pin {} bytes, of {} available", what, bytes,
         host_.available());
  }
  check(error, what);
  return {data, bytes, Memory::pinned, [](void* at, size_t) { cudaFreeHost(at); }};
}

size_t CudaDevice::available(Memory memory) const {
  if (memory != Memory::device) return host_.available();
  select();
  size_t left = 0, total = 0;
  check(cudaMemGetInfo(&left, &total), "the device's memory");
  return left;
}

std::unique_ptr<Stream> CudaDevice::make_stream(std::string_view lane, bool inline_work) {
  return std::make_unique<CudaStream>(index_, events_, lane, inline_work);
}

std::unique_ptr<Event> CudaDevice::make_event() { return std::make_unique<QueueEvent>(); }

}  // namespace hydrant::cuda
