#include <utility>

#include "runtime/backends/cpu/kernels/ints_generic.hpp"
#include "runtime/backends/cpu/kernels/linear_paths.hpp"

namespace hydrant::cpu::generic {

// 16 registers, four for each vector of lanes
constexpr LinearShapes kShapes[3] = {{{1, 2}}, {{1, 2}}, {{1, 2}}};
constexpr int panels_at_once(int, bool) { return 1; }

#include "runtime/backends/cpu/kernels/activation.inl"
#include "runtime/backends/cpu/kernels/linear_blocks.inl"
#include "runtime/backends/cpu/kernels/linear_finish.inl"
#include "runtime/backends/cpu/kernels/linear_float.inl"
#include "runtime/backends/cpu/kernels/linear_int8_block.inl"
#include "runtime/backends/cpu/kernels/linear_int8_dots_bytes.inl"
#include "runtime/backends/cpu/kernels/linear_int8_tile.inl"
#include "runtime/backends/cpu/kernels/linear_pack.inl"
#include "runtime/backends/cpu/kernels/linear_table.inl"

}  // namespace hydrant::cpu::generic
