// In place of the library that is opened at run time: the fake's functions.
#include "runtime/backends/cuda/blas.hpp"

namespace hydrant::cuda {

const BlasLibrary& blas_library() {
  static const BlasLibrary library{cublasCreate, cublasDestroy, cublasSetStream, cublasGemmEx};
  return library;
}

}  // namespace hydrant::cuda
