#include <utility>

#include "runtime/backends/cpu/kernels/ints_avx512.hpp"
#include "runtime/backends/cpu/kernels/linear_paths.hpp"
#include "runtime/backends/cpu/kernels/vec_avx512_bf16.hpp"

#include "runtime/backends/cpu/kernels/begin_avx512_bf16.inc"
namespace hydrant::cpu::avx512_bf16 {

// 32 registers: 24 accumulators leave room for weights and a broadcast; exact quantised weights
// need more of them themselves.
constexpr LinearShapes kShapes[3] = {{{1, 4, 8, 12}}, {{1, 2, 4, 6, 8, 12}}, {{1, 2, 4, 8, 16}}};
constexpr int panels_at_once(int rows, bool quantised) {
  const int most = quantised ? 12 : 24;
  return 4 * rows <= most ? 4 : 2 * rows <= most ? 2 : 1;
}

#include "runtime/backends/cpu/kernels/activation.inl"
#include "runtime/backends/cpu/kernels/linear_blocks.inl"
#include "runtime/backends/cpu/kernels/linear_finish.inl"
#include "runtime/backends/cpu/kernels/linear_float.inl"
#include "runtime/backends/cpu/kernels/linear_int8_block.inl"
#include "runtime/backends/cpu/kernels/linear_int8_dots_vnni.inl"
#include "runtime/backends/cpu/kernels/linear_int8_tile.inl"
#include "runtime/backends/cpu/kernels/linear_pack.inl"
#include "runtime/backends/cpu/kernels/linear_table.inl"

}  // namespace hydrant::cpu::avx512_bf16
#include "runtime/backends/cpu/kernels/end.inc"
