#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "runtime/backends/cuda/blas.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cuda {
namespace {

BlasLibrary open_library() {
  const std::string name = fmt::format("libcublas.so.{}", CUDART_VERSION / 1000);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(Fault::io, "cuda: {} cannot be opened: {}", name, dlerror());
  const auto find = [&](auto& function, const char* symbol) {
    void* const found = dlsym(library, symbol);
    if (!found) fail(Fault::io, "cuda: {} has no {}", name, symbol);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  BlasLibrary functions{};
  find(functions.create, "cublasCreate_v2");
  find(functions.destroy, "cublasDestroy_v2");
  find(functions.set_stream, "cublasSetStream_v2");
  find(functions.gemm, "cublasGemmEx");
  return functions;
}

}  // namespace

const BlasLibrary& blas_library() {
  static const BlasLibrary library = open_library();
  return library;
}

}  // namespace hydrant::cuda
