// Matrix products by cuBLAS, which is opened when the first one is wanted: the program starts on
// machines without it.
#pragma once
#include <cublas_v2.h>

#include <cstdint>

namespace hydrant::cuda {

// The functions that are used; throws io, naming the library, when it cannot be opened.
struct BlasLibrary {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  // Spelt out: in C++ cuBLAS has another one of this name.
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                         const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                         int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                         cublasGemmAlgo_t);
};
const BlasLibrary& blas_library();

// out [rows, outputs] = in [rows, width] . weight [outputs, width]^T, all dense and row by row.
// Sums are f32.
struct BlasProduct {
  cudaDataType type;  // of in and weight
  const void *in, *weight;
  float* out;
  int64_t rows, outputs, width;
};

// A stream's handle.
class Blas {
 public:
  explicit Blas(cudaStream_t stream);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  void multiply(const BlasProduct& product);

 private:
  cublasHandle_t handle_ = nullptr;
};

}  // namespace hydrant::cuda
