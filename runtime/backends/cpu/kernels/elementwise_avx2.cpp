#include "runtime/backends/cpu/kernels/elementwise_paths.hpp"
#include "runtime/backends/cpu/kernels/vec_avx2.hpp"

#include "runtime/backends/cpu/kernels/begin_avx2.inc"
namespace hydrant::cpu::avx2 {
#include "runtime/backends/cpu/kernels/activation.inl"
#include "runtime/backends/cpu/kernels/elementwise.inl"
}  // namespace hydrant::cpu::avx2
#include "runtime/backends/cpu/kernels/end.inc"
