#include "runtime/backends/cpu/kernels/elementwise_paths.hpp"
#include "runtime/backends/cpu/kernels/vec_generic.hpp"

namespace hydrant::cpu::generic {
#include "runtime/backends/cpu/kernels/activation.inl"
#include "runtime/backends/cpu/kernels/elementwise.inl"
}  // namespace hydrant::cpu::generic
