// Sixteen queries of a warp by the keys of a tile, on tensor cores: what attention over a prompt
// and the column sums share, so that both have the same logits, bit by bit. The query heads of a KV
// head stand one behind another, position by position, and share the keys and values they read.
//
// Products of two f16 or bf16 are exact in f32, so the rounding of f32 queries and weights is what
// would be lost. Each of them is therefore carried by two elements, x = high + low, both
// multiplied: what is left out is 2^-22 of x for f16 and 2^-16 for bf16, whose keys and values are
// rounded by 2^-9 themselves. f16's narrow range is no limit: queries are scaled by a power of two.
#pragma once
#include "runtime/backends/cuda/kernels/prompt_chunk.cuh"
#include "runtime/backends/cuda/mma.cuh"
#include "runtime/backends/cuda/warp.cuh"

namespace hydrant::cuda {

inline constexpr int kMmaRows = 16;    // queries of a warp
inline constexpr int kBlockRows = 64;  // of a block

// Vectors in shared memory, padded so that eight of them begin in different banks.
template <class T, int kRows, int kDim>
struct SharedRows {
  T at[kRows][kDim + 8];

  // Keys or values of slots [slot, slot + kRows) by a block of kThreads: copies that are to be
  // waited for; zeros from slot `end` on.
  template <int kThreads>
  __device__ void copy(const KvHead<T>& kv, int32_t slot, int32_t end, bool values) {
    constexpr int kWords = kDim / 8;  // of 16 bytes
    for (int i = int(threadIdx.x); i < kRows * kWords; i += kThreads) {
      const int row = i / kWords, e = i % kWords * 8;
      T* const to = &at[row][e];
      if (slot + row < end)
        copy16(to, (values ? kv.value(slot + row) : kv.key(slot + row)) + e);
      else
        *reinterpret_cast<uint4*>(to) = uint4{};
    }
  }
};

template <class T>
__device__ uint32_t pack(float a, float b) {
  const T pair[2] = {from_float<T>(a), from_float<T>(b)};
  uint32_t word;
  memcpy(&word, pair, sizeof word);
  return word;
}
// Both halves of word `i` of an A.
template <class T>
__device__ void split(float a, float b, MatrixA& high, MatrixA& low, int i) {
  high.words[i] = pack<T>(a, b);
  low.words[i] = pack<T>(a - to_float(from_float<T>(a)), b - to_float(from_float<T>(b)));
}

// kWidth components of sixteen queries, scaled.
template <class T, int kWidth>
struct MmaQueries {
  static constexpr int kSteps = kWidth / 16;
  MatrixA high[kSteps], low[kSteps];
  float back[2];  // what sums of rows lane / 4 and lane / 4 + 8 are multiplied with

  // Components from `component` on, of rows from `first` on; rows that are not there are zero.
  __device__ void load(const Chunk& c, int32_t kv_head, int32_t first, int32_t component) {
    const int lane = int(threadIdx.x) % kWarp;
    for (int r = 0; r < 2; r++) {
      const int32_t row = first + lane / 4 + 8 * r;
      const float* const from = c.q + c.query(min(row, c.rows() - 1), kv_head) * c.shape.head_dim +
                                component + lane % 4 * 2;
      const float factor = row < c.rows() ? c.scale : 0.0f;
      float2 q[2 * kSteps];
      float most = 0;
#pragma unroll
      for (int i = 0; i < 2 * kSteps; i++) {
        q[i] = *reinterpret_cast<const float2*>(from + 8 * i);
        q[i].x *= factor, q[i].y *= factor;
        most = fmaxf(most, fmaxf(fabsf(q[i].x), fabsf(q[i].y)));
      }
      for (int lanes = 1; lanes < 4; lanes *= 2) most = fmaxf(most, exchange(most, lanes));
      // The largest comes to lie in [2^14, 2^15), where f16 has all its bits also 28 powers lower.
      const int exponent = max(__float_as_int(most) >> 23, 32);
      const float forth = __int_as_float((268 - exponent) << 23);
      back[r] = __int_as_float((exponent - 14) << 23);
#pragma unroll
      for (int i = 0; i < 2 * kSteps; i++)
        split<T>(q[i].x * forth, q[i].y * forth, high[i / 2], low[i / 2], i % 2 * 2 + r);
    }
  }

  // Their logits, as far as these components make them, with keys of which `first` is the lane's:
  // of key lane % 8 + lane / 16 * 8 the components lane / 8 % 2 * 8 from these on.
  template <int kOctets, int kStride>
  __device__ void multiply(const T* first, MatrixC (&logits)[kOctets]) const {
    for (MatrixC& octet : logits) octet = {};
#pragma unroll
    for (int step = 0; step < kSteps; step++)
#pragma unroll
      for (int octet = 0; octet < kOctets; octet += 2) {
        MatrixB keys[2];
        load_squares<false>(keys, first + octet * 8 * kStride + step * 16);
        for (int i = 0; i < 2; i++) {
          multiply_add<T>(logits[octet + i], low[step], keys[i]);
          multiply_add<T>(logits[octet + i], high[step], keys[i]);
        }
      }
    for (MatrixC& octet : logits)
      for (int i = 0; i < 4; i++) octet.at[i] *= back[i / 2];
  }
};

// Where the lane finds its part of the first sixteen keys, from `component` on.
template <class T, int kRows, int kDim>
__device__ const T* keys_of_lane(const SharedRows<T, kRows, kDim>& keys, int component) {
  const int lane = int(threadIdx.x) % kWarp;
  return &keys.at[lane % 8 + lane / 16 * 8][component + lane / 8 % 2 * 8];
}

// Wide heads are too much for a warp's registers: their components are parted in two.
template <int kDim>
struct MmaShape {
  static constexpr int kParts = kDim > 128 ? 2 : 1, kWidth = kDim / kParts;
};

// Calls f with the type of the elements and the head size, if there are kernels for both.
template <class F>
cudaError_t with_mma_shape(DType dtype, int32_t dim, const F& f) {
  const auto of_type = [&]<class T>(T) {
    if (dim == 64) return f.template operator()<T, 64>();
    if (dim == 80) return f.template operator()<T, 80>();
    if (dim == 96) return f.template operator()<T, 96>();
    if (dim == 128) return f.template operator()<T, 128>();
    if (dim == 256) return f.template operator()<T, 256>();
    return cudaErrorInvalidValue;
  };
  return dtype == DType::f16 ? of_type(__half{}) : of_type(__nv_bfloat16{});
}

}  // namespace hydrant::cuda
