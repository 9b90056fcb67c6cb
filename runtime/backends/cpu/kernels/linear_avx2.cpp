#include <utility>

#include "runtime/backends/cpu/kernels/ints_avx2.hpp"
#include "runtime/backends/cpu/kernels/linear_paths.hpp"

#include "runtime/backends/cpu/kernels/begin_avx2.inc"
namespace hydrant::cpu::avx2 {

// 16 registers, two for each vector of lanes
constexpr LinearShapes kShapes[3] = {{{1, 2, 4}}, {{1, 2, 4}}, {{1, 2, 4}}};
constexpr int panels_at_once(int rows, bool quantised) { return rows == 1 && !quantised ? 2 : 1; }

#include "runtime/backends/cpu/kernels/activation.inl"
#include "runtime/backends/cpu/kernels/linear_blocks.inl"
#include "runtime/backends/cpu/kernels/linear_finish.inl"
#include "runtime/backends/cpu/kernels/linear_float.inl"
#include "runtime/backends/cpu/kernels/linear_int8_block.inl"
#include "runtime/backends/cpu/kernels/linear_int8_dots_bytes.inl"
#include "runtime/backends/cpu/kernels/linear_int8_tile.inl"
#include "runtime/backends/cpu/kernels/linear_pack.inl"
#include "runtime/backends/cpu/kernels/linear_table.inl"

}  // namespace hydrant::cpu::avx2
#include "runtime/backends/cpu/kernels/end.inc"
