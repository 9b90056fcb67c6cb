// The functions of the CUDA runtime that the backend calls, with the prototypes of the real header.
// A call that is not here is a link error, which says what to add.
#include "test/cuda/emu/fake_runtime.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "test/cuda/emu/block.hpp"
#include "test/cuda/emu/fake_streams.hpp"
#include "test/cuda/emu/sanitizers.hpp"
#include "test/cuda/emu/settings.hpp"

namespace emu {
namespace {

constexpr int kUsualShared = 48 << 10, kMostShared = 99 << 10;

std::atomic<cudaError_t> broken{cudaSuccess};
thread_local cudaError_t last = cudaSuccess;
thread_local int chosen = 0;
std::map<const void*, int> shared_allowed;  // [kernel], beyond what all may have
std::atomic<int64_t> takes{0};
size_t most_device = 0, most_pinned = 0;  // under the runtime's lock

cudaError_t returned(cudaError_t error) {
  if (broken != cudaSuccess) error = broken;
  if (error != cudaSuccess) last = error;
  return error;
}

FakeRuntime& runtime() { return FakeRuntime::get(); }

template <class Call>
cudaError_t locked(const Call& call) {
  if (broken != cudaSuccess) return returned(broken);
  const Hidden hidden;
  const std::lock_guard lock(runtime().mutex);
  return returned(call());
}

// The same for what takes something.
template <class Call>
cudaError_t taking(const Call& call) {
  takes++;
  return locked([&] {
    const cudaError_t error = call();
    most_device = std::max(most_device, runtime().memory.device_bytes());
    most_pinned = std::max(most_pinned, runtime().memory.pinned_bytes());
    return error;
  });
}

}  // namespace

Taken taken() {
  const Hidden hidden;
  const std::lock_guard lock(runtime().mutex);
  const FakeMemory& memory = runtime().memory;
  return {memory.device_bytes(), memory.pinned_bytes(), most_device, most_pinned, takes};
}

void forget_most() {
  const Hidden hidden;
  const std::lock_guard lock(runtime().mutex);
  most_device = runtime().memory.device_bytes();
  most_pinned = runtime().memory.pinned_bytes();
}

void die(const char* format, ...) {
  std::fprintf(stderr, "FAKE CUDA: ");
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "\n");
  std::abort();
}

void break_device(cudaError_t error) {
  broken = error;
  if (error == cudaSuccess) last = cudaSuccess;
}

cudaError_t enqueue_launch(const void* kernel, dim3 grid, dim3 block, size_t shared_bytes,
                           cudaStream_t stream, std::function<void()> body) {
  constexpr unsigned kMost = 65535;
  const size_t threads = size_t{block.x} * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > kMost ||
      grid.z > kMost || threads == 0 || threads > 1024 || block.z > 64)
    return returned(cudaErrorInvalidConfiguration);
  int allowed = kUsualShared;
  if (const auto found = shared_allowed.find(kernel); found != shared_allowed.end())
    allowed = found->second;
  if (shared_bytes > size_t(allowed)) return returned(cudaErrorInvalidValue);
  static std::atomic<int> launches = 0;
  if (++launches == settings().break_at) broken = cudaErrorIllegalAddress;
  if (broken == cudaSuccess)
    enqueue(stream,
            [=, run = std::move(body)] { run_grid("kernel", grid, block, shared_bytes, run); });
  return returned(cudaSuccess);
}

}  // namespace emu

using namespace emu;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = settings().devices;
  const bool answers = *count > 0 && settings().driver / 1000 >= CUDART_VERSION / 1000;
  return returned(answers ? cudaSuccess : cudaErrorInsufficientDriver);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = settings().devices == 0 ? 0 : settings().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (settings().start != 0 && singled_out(device)) return returned(cudaError_t(settings().start));
  if (device >= settings().devices) return returned(cudaErrorInvalidDevice);
  chosen = device;
  return returned(cudaSuccess);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Emulated GPU");
  properties->totalGlobalMem = settings().device_bytes;
  return returned(cudaSuccess);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const int capability = singled_out(device) ? settings().capability : Settings{}.capability;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = capability / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = capability % 10;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 4;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = kMostShared;
      break;
    default:
      die("cudaDeviceGetAttribute(%d) is not emulated", int(attribute));
  }
  return returned(cudaSuccess);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  return returned(settings().code || !singled_out(chosen) ? cudaSuccess
                                                          : cudaErrorNoKernelImageForDevice);
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
    die("cudaFuncSetAttribute(%d) is not emulated", int(attribute));
  return locked([&] {
    if (value > kMostShared) return cudaErrorInvalidValue;
    shared_allowed[kernel] = std::max(value, kUsualShared);
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** at, size_t bytes) {
  return taking([&] { return runtime().memory.allocate(at, bytes); });
}
cudaError_t cudaFree(void* at) {
  if (!at) return cudaSuccess;
  runtime().synchronize_all();
  return locked([&] {
    runtime().memory.free(at);
    return cudaSuccess;
  });
}
cudaError_t cudaHostAlloc(void** at, size_t bytes, unsigned) {
  return taking([&] { return runtime().memory.pin(at, bytes); });
}
cudaError_t cudaFreeHost(void* at) {
  return locked([&] {
    runtime().memory.unpin(at);
    return cudaSuccess;
  });
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return locked([&] {
    *free = runtime().memory.free_bytes();
    *total = settings().device_bytes;
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  static std::atomic<int> copies = 0;
  if (++copies == settings().lose_at) broken = cudaErrorUnknown;
  if (broken != cudaSuccess) return returned(broken);
  return returned(runtime().copy(to, from, bytes, kind, stream));
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  if (broken != cudaSuccess) return returned(broken);
  emu::enqueue(stream, [=] { std::memset(at, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  takes++;
  *stream = runtime().make_stream();
  return returned(cudaSuccess);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  runtime().destroy(stream);
  return returned(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  runtime().synchronize(stream);
  return returned(cudaSuccess);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  takes++;
  *event = new CUevent_st;
  return returned(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return returned(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (broken == cudaSuccess) runtime().record(event, stream);
  return returned(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (broken == cudaSuccess) runtime().synchronize(event);
  return returned(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (broken == cudaSuccess) runtime().wait(stream, event);
  return returned(cudaSuccess);
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last;
  last = broken;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last; }
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    default:
      return "cudaErrorEmulated";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the emulated device";
}
