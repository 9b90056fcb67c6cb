#include "runtime/backends/cpu/kernels/attend_paths.hpp"
#include "runtime/backends/cpu/kernels/vec_generic.hpp"

namespace hydrant::cpu::generic {
namespace {
constexpr int kSums = 4;  // accumulators of 16 lanes that fit the registers
}  // namespace
#include "runtime/backends/cpu/kernels/attend_tiles.inl"

#include "runtime/backends/cpu/kernels/attend_decode.inl"

#include "runtime/backends/cpu/kernels/attend_prompt.inl"

const AttendKernels attend_kernels = {decode_part, decode_merge, prompt_tile, column_block};
}  // namespace hydrant::cpu::generic
