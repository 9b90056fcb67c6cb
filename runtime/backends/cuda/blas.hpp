// Matrix products by cuBLAS, which is opened when the first one is wanted: the program starts on
// machines without it.
#pragma once
#include <driver_types.h>
#include <library_types.h>

#include <cstdint>

struct cublasContext;

namespace hydrant::cuda {

// What is used of cuBLAS, spelt out: its header comes with 400 MB that nothing else here needs.
// test/cuda/blas_header_test.cpp holds this to it where it is.
using BlasHandle = cublasContext*;
inline constexpr int kBlasSuccess = 0, kBlasNoMemory = 3;  // status
inline constexpr int kBlasAsIs = 0, kBlasTransposed = 1;   // operand
inline constexpr int kBlasSumsF32 = 68, kBlasAnyAlgorithm = -1;

// The functions that are used; throws io, naming the library, when it cannot be opened.
struct BlasLibrary {
  int (*create)(BlasHandle*);
  int (*destroy)(BlasHandle);
  int (*set_stream)(BlasHandle, cudaStream_t);
  int (*gemm)(BlasHandle, int a_operand, int b_operand, int m, int n, int k, const void* alpha,
              const void* a, cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
              int ldb, const void* beta, void* c, cudaDataType c_type, int ldc, int sums,
              int algorithm);
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
  BlasHandle handle_ = nullptr;
};

}  // namespace hydrant::cuda
