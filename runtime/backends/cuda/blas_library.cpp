#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "runtime/backends/cuda/blas.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cuda {
namespace {

// A toolkit may lie where the system does not look for libraries.
void* open_file(const std::string& name) {
  if (void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const std::string why = dlerror();
  const char* const homes[] = {std::getenv("CUDA_HOME"), std::getenv("CUDA_PATH"),
                               "/usr/local/cuda"};
  for (const char* const home : homes) {
    if (!home) continue;
    const std::string path = fmt::format("{}/lib64/{}", home, name);
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  fail(Fault::io,
       "cuda: {} cannot be opened: {}; nor is it in lib64 of CUDA_HOME, CUDA_PATH or "
       "/usr/local/cuda",
       name, why);
}

BlasLibrary open_library() {
  const std::string name = fmt::format("libcublas.so.{}", CUDART_VERSION / 1000);
  void* const library = open_file(name);
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
