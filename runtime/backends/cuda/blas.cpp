#include "runtime/backends/cuda/blas.hpp"

#include "runtime/base/error.hpp"

namespace hydrant::cuda {
namespace {

void check(int status, const char* what) {
  if (status == kBlasSuccess) return;
  if (status == kBlasNoMemory)
    fail(Fault::out_of_memory, "cuda: {}: cuBLAS found no memory on the device", what);
  fail(Fault::io, "cuda: {}: cuBLAS failed with status {}", what, status);
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
  check(blas_library().gemm(handle_, kBlasTransposed, kBlasAsIs, m, n, k, &kOne, p.weight, p.type,
                            k, p.in, p.type, k, &kZero, p.out, CUDA_R_32F, m, kBlasSumsF32,
                            kBlasAnyAlgorithm),
        "a product");
}

}  // namespace hydrant::cuda
