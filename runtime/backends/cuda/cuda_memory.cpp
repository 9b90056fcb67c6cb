#include "runtime/backends/cuda/cuda_memory.hpp"

#include <cuda_runtime_api.h>
#include <sys/resource.h>

#include "runtime/backends/cuda/cuda_errors.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/host_memory.hpp"

namespace hydrant::cuda {
namespace {

// Some systems hold a driver's pages to what a user may lock.
std::string lock_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("; ulimit -l lets this user lock {}", limit.rlim_cur);
}

}  // namespace

Buffer allocate_device(size_t bytes, std::string_view what) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it would be the next call's, too
    size_t left = 0, total = 0;
    check(cudaMemGetInfo(&left, &total), "the device's memory");
    fail(Fault::out_of_memory, "{}: {} bytes wanted on the device, {} of {} available", what, bytes,
         left, total);
  }
  check(error, what);
  return {data, bytes, Memory::device, [](void* at, size_t) { cudaFree(at); }};
}

Buffer allocate_pinned(size_t bytes, std::string_view what) {
  const size_t left = available_memory();
  if (bytes > left)
    fail(Fault::out_of_memory, "{}: {} bytes wanted, {} available", what, bytes, left);
  void* data = nullptr;
  const cudaError_t error = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (error == cudaErrorMemoryAllocation || error == cudaErrorOperatingSystem) {
    cudaGetLastError();  // it would be the next call's, too
    fail(Fault::out_of_memory, "{}: the system does not pin {} bytes, of {} available{}", what,
         bytes, left, lock_limit());
  }
  check(error, what);
  return {data, bytes, Memory::pinned, [](void* at, size_t) { cudaFreeHost(at); }};
}

}  // namespace hydrant::cuda
