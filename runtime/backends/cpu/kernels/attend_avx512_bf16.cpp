#include "runtime/backends/cpu/kernels/attend_paths.hpp"
#include "runtime/backends/cpu/kernels/vec_avx512_bf16.hpp"

#include "runtime/backends/cpu/kernels/begin_avx512_bf16.inc"
namespace hydrant::cpu::avx512_bf16 {
namespace {
constexpr int kSums = 24;  // accumulators of 16 lanes that fit the registers
}  // namespace
#include "runtime/backends/cpu/kernels/attend_tiles.inl"

#include "runtime/backends/cpu/kernels/attend_decode.inl"

#include "runtime/backends/cpu/kernels/attend_prompt.inl"

const AttendKernels attend_kernels = {decode_part, decode_merge, prompt_tile, column_block};
}  // namespace hydrant::cpu::avx512_bf16
#include "runtime/backends/cpu/kernels/end.inc"
