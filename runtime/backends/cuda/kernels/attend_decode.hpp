// Attention of one query a row over its live slots.
#pragma once
#include <driver_types.h>

#include "runtime/backends/cuda/kernel_fault.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

inline constexpr int32_t kMostHeadDim = 256;

// What a step of `rows` rows with `slots` slots takes beside its arguments: the parts of rows that
// several blocks attend, and the ranks of keys where some row has Positions::cache. A row is cut
// into as many parts as fill a card of so many multiprocessors.
size_t attend_decode_bytes(const HeadShape& shape, int64_t rows, int32_t slots, bool ranks,
                           int32_t multiprocessors);
cudaError_t attend_decode(cudaStream_t stream, KernelFault* fault, const AttendDecodeArgs& args,
                          void* scratch, int32_t multiprocessors);

}  // namespace hydrant::cuda
