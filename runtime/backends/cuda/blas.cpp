#include "runtime/backends/cuda/blas.hpp"

#include "runtime/base/error.hpp"

namespace hydrant::cuda {
namespace {

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    fail(Fault::out_of_memory, "cuda: {}: cuBLAS found no memory on the device", what);
  fail(Fault::io, "cuda: {}: cuBLAS failed with status {}", what, int(status));
}

}  // namespace

Blas::Blas(cudaStream_t stream) {
  check(blas_library().create(&handle_), "a handle");
  check(blas_library().set_stream(handle_, stream), "a handle");
}

Blas::~Blas() { blas_library().destroy(handle_); }

void Blas::multiply(const BlasProduct& p) {
  constexpr float kOne = 1, kZero = 0;
  // cuBLAS counts column by column: there our rows are columns, and weight is to be transposed.
  const int m = int(p.outputs), n = int(p.rows), k = int(p.width);
  check(blas_library().gemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &kOne, p.weight, p.type, k,
                            p.in, p.type, k, &kZero, p.out, CUDA_R_32F, m, CUBLAS_COMPUTE_32F,
                            CUBLAS_GEMM_DEFAULT),
        "a product");
}

}  // namespace hydrant::cuda
