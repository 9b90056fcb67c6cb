// The calls of cuBLAS that the backend makes, as plain loops on the fake runtime's streams. Built
// with the sanitizers of the program, so that operands are watched.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "test/cuda/emu/fake_runtime.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

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

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
                            int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (m < 0 || n < 0 || k < 0 || lda < k || ldb < k || ldc < m) return CUBLAS_STATUS_INVALID_VALUE;
  if (a_op != CUBLAS_OP_T || b_op != CUBLAS_OP_N || a_type != b_type || c_type != CUDA_R_32F ||
      compute != CUBLAS_COMPUTE_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
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
  return CUBLAS_STATUS_SUCCESS;
}
