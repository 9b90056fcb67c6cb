// The operands of products on f16 tensor cores. Rows of both lie half_width(k) apart, past k are
// zeros: cuBLAS is fastest where a row is whole pieces of 16 bytes.
//
// A row of the input is multiplied by a power of two that brings its largest magnitude into
// [2^13, 2^14), and the ending takes it back; both are exact. So none overflows, and an element x
// is off by at most
//
//   max(2^-11 |x|, 2^-38 of the row's largest, 2^-151)
//
// One of eight significant bits (bf16) is exact from 2^-30 of the row's largest on. A row with a
// NaN or an infinity is taken as it is, and is spoilt. A weight w is off by at most max(2^-11 |w|,
// 2^-25); one beyond 65504 becomes infinite, and so does what it touches.
#pragma once
#include "runtime/backends/cuda/kernels/linear.hpp"
#include "runtime/base/aligned.hpp"

namespace hydrant::cuda {

constexpr int64_t half_width(int64_t width) { return align_up(width, int64_t{8}); }

// in, rounded to f16 as above, as f32.
cudaError_t round_f16(cudaStream_t stream, const Rows& in, float* out);
// in, rounded as products of this kind round it, as f16; back[row] is what undoes the row's power
// of two. Not for Activations::f32. Both outputs are aligned to 16.
cudaError_t to_f16(cudaStream_t stream, Activations how, const Rows& in, void* out, float* back);
// Rows [first, first + count) of W as f16.
cudaError_t unpack_f16(cudaStream_t stream, const Weight& weight, int64_t first, int64_t count,
                       void* out);

}  // namespace hydrant::cuda
