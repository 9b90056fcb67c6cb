#include "runtime/backends/cuda/cuda_device.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "runtime/backends/cuda/blas.hpp"
#include "runtime/backends/cuda/cuda_errors.hpp"
#include "runtime/backends/cuda/cuda_memory.hpp"
#include "runtime/backends/cuda/kernels/probe.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/usable_cores.hpp"

namespace hydrant::cuda {
namespace {

// What comes on top of a plan once it runs: cuBLAS's handle and workspace (32 MiB on sm_90), and
// its kernels and ours, which are loaded as they are first used.
constexpr size_t kLibraries = size_t{128} << 20;

// Threads that read and pack weights: so many fill the bus, and each takes some MiB.
constexpr int kMostThreads = 8;

int helpers(int asked) {
  if (asked < 0) fail(Fault::bad_config, "threads: {}, must not be negative", asked);
  return asked > 0 ? asked : std::min(usable_cores(), kMostThreads);
}

}  // namespace

CudaDevice::CudaDevice(const DeviceOptions& options)
    : index_(options.index), threads_(helpers(options.threads)), ops_(multiprocessors(index_)) {
  if (!options.isa.empty())
    fail(Fault::bad_config, "isa: '{}' is the CPU's; a card has only its own", options.isa);
  const int sm = capability(index_);
  if (sm < kLeastCapability)
    fail(Fault::bad_config, "device: cuda:{}: compute capability {}.{}, expected {}.{} or later",
         index_, sm / 10, sm % 10, kLeastCapability / 10, kLeastCapability % 10);
  check_opened(cudaSetDevice(index_), index_);
  check_opened(probe(), index_);
  blas_library();  // now, and not in the middle of a run
  if (sm < kTensorCoresTakeBf16) cache_type_ = DType::f16;
  architecture_ = fmt::format("sm_{}", sm);
  description_ = fmt::format("cuda:{} {}", index_, describe_devices().at(size_t(index_)));
}

void CudaDevice::select() const { check(cudaSetDevice(index_), "the chosen device"); }

Buffer CudaDevice::allocate(Memory memory, size_t bytes, std::string_view what) {
  if (bytes == 0) return {};
  if (memory == Memory::pageable) return host_.allocate(memory, bytes, what);
  select();
  return memory == Memory::device ? allocate_device(bytes, what) : allocate_pinned(bytes, what);
}

size_t CudaDevice::available(Memory memory) const {
  if (memory != Memory::device) return host_.available();
  select();
  size_t left = 0, total = 0;
  check(cudaMemGetInfo(&left, &total), "the device's memory");
  return left - std::min(left, kLibraries);
}

std::unique_ptr<Stream> CudaDevice::make_stream(std::string_view lane, bool inline_work) {
  return std::make_unique<CudaStream>(index_, events_, lane, inline_work);
}

std::unique_ptr<Event> CudaDevice::make_event() {
  select();
  events_->grow();
  return std::make_unique<QueueEvent>();
}

}  // namespace hydrant::cuda
