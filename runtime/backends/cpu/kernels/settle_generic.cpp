#include "runtime/backends/cpu/kernels/settle_paths.hpp"
#include "runtime/backends/cpu/kernels/vec_generic.hpp"
namespace hydrant::cpu::generic {

#include "runtime/backends/cpu/kernels/settle.inl"

}  // namespace hydrant::cpu::generic
