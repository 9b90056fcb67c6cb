#include "runtime/backends/cpu/kernels/vec_generic.hpp"
#include "test/ops/vec_probe.hpp"

namespace hydrant::cpu::generic {
#include "test/ops/vec_probe.inl"
}
