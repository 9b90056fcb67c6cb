// What blas.hpp says of cuBLAS is what its header says, where there is one.
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>

#include <type_traits>

#include "runtime/backends/cuda/blas.hpp"

namespace {

using namespace hydrant::cuda;

// Enumerations are passed as int; cudaDataType is known to both.
template <class T>
using Passed = std::conditional_t<std::is_enum_v<T> && !std::is_same_v<T, cudaDataType>, int, T>;
template <class R, class... P>
auto passed(R (*)(P...)) -> Passed<R> (*)(Passed<P>...);
template <auto function>
using As = decltype(passed(function));

// In C++ there is another one of this name.
using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                const void*, const void*, cudaDataType, int, const void*,
                                cudaDataType, int, const void*, void*, cudaDataType, int,
                                cublasComputeType_t, cublasGemmAlgo_t);

static_assert(std::is_same_v<cublasHandle_t, BlasHandle>);
static_assert(std::is_same_v<As<cublasCreate_v2>, decltype(BlasLibrary::create)>);
static_assert(std::is_same_v<As<cublasDestroy_v2>, decltype(BlasLibrary::destroy)>);
static_assert(std::is_same_v<As<cublasSetStream_v2>, decltype(BlasLibrary::set_stream)>);
static_assert(std::is_same_v<As<static_cast<Gemm>(cublasGemmEx)>, decltype(BlasLibrary::gemm)>);
static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cublasOperation_t) == sizeof(int) &&
              sizeof(cublasComputeType_t) == sizeof(int) &&
              sizeof(cublasGemmAlgo_t) == sizeof(int));
static_assert(CUBLAS_STATUS_SUCCESS == kBlasSuccess &&
              CUBLAS_STATUS_ALLOC_FAILED == kBlasNoMemory && CUBLAS_OP_N == kBlasAsIs &&
              CUBLAS_OP_T == kBlasTransposed && CUBLAS_COMPUTE_32F == kBlasSumsF32 &&
              CUBLAS_GEMM_DEFAULT == kBlasAnyAlgorithm);

}  // namespace
#endif
