#include "runtime/backends/cpu/kernels/vec_avx512.hpp"
#include "test/ops/vec_probe.hpp"

#include "runtime/backends/cpu/kernels/begin_avx512.inc"
namespace hydrant::cpu::avx512 {
#include "test/ops/vec_probe.inl"
}
#include "runtime/backends/cpu/kernels/end.inc"
