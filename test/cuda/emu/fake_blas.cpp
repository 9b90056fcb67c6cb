// In place of the library that is opened at run time: the calls of cuBLAS that the backend makes,
// as plain loops on the fake runtime's streams. Built with the sanitizers of the program, so that
// operands are watched.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "runtime/backends/cuda/blas.hpp"
#include "test/cuda/emu/fake_runtime.hpp"
#include "test/cuda/emu/settings.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

using namespace hydrant::cuda;

float load(const void* at, int64_t i, cudaDataType type) {
  if (type == CUDA_R_16F) return __half2float(static_cast<const __half*>(at)[i]);
  if (type == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(at)[i]);
  return static_cast<const float*>(at)[i];
}

struct Product {
  int m, n, k;
  const void *a, *b;
  cudaDataType type;
  int lda, ldb, ldc;
  float* c;
  float alpha, beta;

  // Column-major: c[m, n] = alpha * a^T[m, k] b[k, n] + beta * c
  void run() const {
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < m; i++) {
        float sum = 0;
        for (int64_t p = 0; p < k; p++)
          sum += load(a, p + i * lda, type) * load(b, p + j * ldb, type);
        float& out = c[i + j * ldc];
        out = alpha * sum + (beta == 0 ? 0.0f : beta * out);
      }
  }
};

int create(BlasHandle* handle) {
  if (emu::settings().blas != kBlasSuccess) return emu::settings().blas;
  *handle = new cublasContext;
  return kBlasSuccess;
}
int destroy(BlasHandle handle) {
  delete handle;
  return kBlasSuccess;
}
int set_stream(BlasHandle handle, cudaStream_t stream) {
  handle->stream = stream;
  return kBlasSuccess;
}
int multiply(BlasHandle handle, int a_operand, int b_operand, int m, int n, int k,
             const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
             cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
             int sums, int) {
  constexpr int kInvalidValue = 7, kArchitectureMismatch = 8, kNotSupported = 15;
  if (m < 0 || n < 0 || k < 0 || lda < k || ldb < k || ldc < m) return kInvalidValue;
  if (a_operand != kBlasTransposed || b_operand != kBlasAsIs || a_type != b_type ||
      (a_type != CUDA_R_32F && a_type != CUDA_R_16F && a_type != CUDA_R_16BF) ||
      c_type != CUDA_R_32F || sums != kBlasSumsF32)
    return kNotSupported;
  if (a_type == CUDA_R_16BF && emu::settings().capability < 80) return kArchitectureMismatch;
  const Product product{m,
                        n,
                        k,
                        a,
                        b,
                        a_type,
                        lda,
                        ldb,
                        ldc,
                        static_cast<float*>(c),
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta)};
  emu::enqueue(handle->stream, [product] { product.run(); });
  return kBlasSuccess;
}

}  // namespace

const hydrant::cuda::BlasLibrary& hydrant::cuda::blas_library() {
  static const BlasLibrary library{create, destroy, set_stream, multiply};
  return library;
}
