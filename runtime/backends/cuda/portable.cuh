// The only place that tells nvcc from the emulator of the tests, which runs kernels as C++ with a
// fiber for each CUDA thread. Kernels know launch(), SHARED, DYN_SHARED and CUDA's own words, no
// others.
#pragma once
#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#else
#include <emu/device.hpp>  // test/cuda
#endif

#include <cstddef>
#include <tuple>
#include <utility>

namespace hydrant::cuda {

// How a kernel is spread out, and the stream it goes to.
struct Launch {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

#if defined(__CUDACC__)

template <class... Parameters, class... Args>
cudaError_t launch(void (*kernel)(Parameters...), const Launch& how, Args&&... args) {
  kernel<<<how.grid, how.block, how.shared_bytes, how.stream>>>(
      static_cast<Parameters>(std::forward<Args>(args))...);
  return cudaPeekAtLastError();
}

// An array in the memory that the threads of a block share.
#define SHARED(T, name, ...) __shared__ __align__(16) T name __VA_ARGS__
// The part of it whose size the launch says.
#define DYN_SHARED(T, name)                                     \
  extern __shared__ __align__(16) unsigned char shared_bytes[]; \
  T* const name = reinterpret_cast<T*>(shared_bytes)

#else

template <class... Parameters, class... Args>
cudaError_t launch(void (*kernel)(Parameters...), const Launch& how, Args&&... args) {
  return emu::enqueue_launch(
      reinterpret_cast<const void*>(kernel), how.grid, how.block, how.shared_bytes, how.stream,
      [kernel, values = std::tuple<Parameters...>(static_cast<Parameters>(
                   std::forward<Args>(args))...)] { std::apply(kernel, values); });
}

#define SHARED(T, name, ...)         \
  static char name##_key;            \
  using name##_type = T __VA_ARGS__; \
  auto& name = *static_cast<name##_type*>(::emu::named_shared(&name##_key, sizeof(name##_type)))
#define DYN_SHARED(T, name) T* const name = static_cast<T*>(::emu::dynamic_shared())

#endif

}  // namespace hydrant::cuda
