#include "runtime/backends/cpu/kernels/settle_paths.hpp"
#include "runtime/backends/cpu/kernels/vec_avx2.hpp"

#include "runtime/backends/cpu/kernels/begin_avx2.inc"
namespace hydrant::cpu::avx2 {

#include "runtime/backends/cpu/kernels/settle.inl"

}  // namespace hydrant::cpu::avx2
#include "runtime/backends/cpu/kernels/end.inc"
