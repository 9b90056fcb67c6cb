#include "runtime/backends/cpu/kernels/vec_avx2.hpp"
#include "test/ops/vec_probe.hpp"

#include "runtime/backends/cpu/kernels/begin_avx2.inc"
namespace hydrant::cpu::avx2 {
#include "test/ops/vec_probe.inl"
}
#include "runtime/backends/cpu/kernels/end.inc"
