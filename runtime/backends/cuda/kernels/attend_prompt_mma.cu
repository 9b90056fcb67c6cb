#include <climits>

#include "runtime/backends/cuda/kernels/attend_prompt.hpp"
#include "runtime/backends/cuda/kernels/prompt_mma.cuh"
#include "runtime/backends/cuda/kernels/softmax.cuh"

namespace hydrant::cuda {
namespace {

template <class T, int kDim>
struct Tile : MmaShape<kDim> {
  static constexpr int kKeys = kDim > 128 ? 16 : 32;  // two stages of both stay below 48 KiB
  static constexpr int kThreads = kBlockRows / kMmaRows * kWarp * MmaShape<kDim>::kParts;
  // Weights are at most 1; as f16 they are moved up, so that small ones keep their bits.
  static constexpr float kWeight = std::is_same_v<T, __half> ? 16384.0f : 1.0f;
  using Rows = SharedRows<T, kKeys, kDim>;
};

// Over the four lanes that have a row.
template <class Join>
__device__ float row_join(float value, const Join& join) {
  for (int lanes = 1; lanes < 4; lanes *= 2) value = join(value, exchange(value, lanes));
  return value;
}

// What is no number would reach queries that do not see it, for 0 times it is none either: it is
// taken out of a tile that not all rows of the block see. Column `e`, if there is one, is the
// thread's; returns the first slot where something was.
template <class T, int kKeys, int kDim>
__device__ int32_t take_out(SharedRows<T, kKeys, kDim>& values, int e, int32_t slot) {
  int32_t first = INT_MAX;
  if (e >= kDim) return first;
  for (int key = kKeys - 1; key >= 0; key--) {
    const float value = to_float(values.at[key][e]);
    if (value - value == 0) continue;
    values.at[key][e] = from_float<T>(0.0f);
    first = slot + key;
  }
  return first;
}

// A block for 64 queries of one KV head, of wide heads with two warps for sixteen of them, each for
// half of the components. Keys come in tiles from slot 0 on and each row has a softmax of its own,
// so that a query's bits do not depend on its chunk or its neighbours: what those add to it are
// weights of 0. A tile is attended while the next one is on its way. Outputs that are no numbers
// are NaN.
template <class T, int kDim>
__global__ void __launch_bounds__(Tile<T, kDim>::kThreads, 3 - Tile<T, kDim>::kParts)
    attend_prompt_mma_kernel(Chunk c, float* out, float* lse) {
  using S = Tile<T, kDim>;
  constexpr int kOctets = S::kKeys / 8, kOutputs = S::kWidth / 8;
  SHARED(typename S::Rows, keys, [2]);
  SHARED(typename S::Rows, values, [2]);
  SHARED(int32_t, spoilt, [kDim]);  // slot of the column's first value that is no number
  SHARED(float4, halves, [S::kParts > 1 ? S::kThreads * kOctets : 1]);
  const int thread = int(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const int part = warp % S::kParts, component = part * S::kWidth;
  const auto kv_head = int32_t(blockIdx.y);
  // The last ones see the most, and begin first.
  const int32_t first = int32_t(gridDim.x - 1 - blockIdx.x) * kBlockRows;
  const int32_t last = c.position(min(first + kBlockRows, c.rows()) - 1) + 1;
  const int32_t seen_by_all = c.position(first) + 1;
  const int32_t row0 = first + warp / S::kParts * kMmaRows;
  const int32_t seen_by_warp =
      row0 < c.rows() ? c.position(min(row0 + kMmaRows, c.rows()) - 1) + 1 : 0;
  const KvHead<T> kv(c.kv, kv_head, kDim);
  const auto load = [&](int32_t slot, int stage) {
    keys[stage].template copy<S::kThreads>(kv, slot, last, false);
    values[stage].template copy<S::kThreads>(kv, slot, last, true);
    end_copies();
  };
  load(0, 0);
  MmaQueries<T, S::kWidth> queries;
  queries.load(c, kv_head, row0, component);
  int32_t row[2], visible[2];
  for (int r = 0; r < 2; r++) {
    row[r] = row0 + lane / 4 + 8 * r;
    visible[r] = c.position(row[r]) + 1;
  }
  if (thread < kDim) spoilt[thread] = INT_MAX;

  Softmax softmax[2];  // sums: of the lane's own keys
  MatrixC sums[kOutputs] = {};
  for (int32_t slot = 0, stage = 0; slot < last; slot += S::kKeys, stage ^= 1) {
    if (slot + S::kKeys < last) {
      load(slot + S::kKeys, stage ^ 1);
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();
    if (slot + S::kKeys > seen_by_all) {
      const int32_t found = take_out(values[stage], thread, slot);
      if (thread < kDim) spoilt[thread] = min(spoilt[thread], found);
      __syncthreads();
    }
    const bool works = slot < seen_by_warp;
    MatrixC logits[kOctets];
    if (works)
      queries.template multiply<kOctets, kDim + 8>(keys_of_lane(keys[stage], component), logits);
    if constexpr (S::kParts > 1) {
      for (int o = 0; o < kOctets; o++)
        if (works) memcpy(&halves[o * S::kThreads + thread], &logits[o], sizeof logits[o]);
      __syncthreads();
      for (int o = 0; o < kOctets; o++)
        if (works) {
          const float4 other = halves[o * S::kThreads + (thread ^ kWarp)];
          logits[o].at[0] += other.x, logits[o].at[1] += other.y;
          logits[o].at[2] += other.z, logits[o].at[3] += other.w;
        }
    }
    if (works) {
      const int32_t key = slot + lane % 4 * 2;  // the lane's first
      float old[2];
#pragma unroll
      for (int r = 0; r < 2; r++) {
        float max = softmax[r].max;
#pragma unroll
        for (int i = 0; i < 2 * kOctets; i++) {
          float& logit = logits[i / 2].at[2 * r + i % 2];
          if (key + i / 2 * 8 + i % 2 >= visible[r]) logit = -INFINITY;
          max = fmaxf(max, logit);
        }
        max = row_join(max, Most{});
        old[r] = softmax[r].rescale(max);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 2 * kOctets; i++) {
          float& logit = logits[i / 2].at[2 * r + i % 2];
          const float weight = Softmax::weight(logit, max);
          sum += weight;
          logit = weight * S::kWeight;
        }
        softmax[r].max = max;
        softmax[r].sum = fmaf(softmax[r].sum, old[r], sum);
      }
#pragma unroll
      for (MatrixC& sum : sums)
        for (int i = 0; i < 4; i++) sum.at[i] *= old[i / 2];
#pragma unroll
      for (int step = 0; step < kOctets / 2; step++) {
        MatrixA high, low;  // sixteen keys' weights: C's of two octets are an A
        for (int i = 0; i < 4; i++) {
          const float* const pair = &logits[2 * step + i / 2].at[i % 2 * 2];
          split<T>(pair[0], pair[1], high, low, i);
        }
#pragma unroll
        for (int n = 0; n < kOutputs; n += 2) {
          MatrixB v[2];
          load_squares<true>(
              v, &values[stage].at[step * 16 + lane % 16][component + n * 8 + lane / 16 * 8]);
          for (int i = 0; i < 2; i++) {
            multiply_add<T>(sums[n + i], low, v[i]);
            multiply_add<T>(sums[n + i], high, v[i]);
          }
        }
      }
    }
    __syncthreads();  // the stage is free
  }

#pragma unroll
  for (int r = 0; r < 2; r++) {
    softmax[r].sum = row_join(softmax[r].sum, Add{});
    if (row[r] >= c.rows()) continue;
    const int64_t query = c.query(row[r], kv_head);
    float* const to = out + query * kDim;
    const float weights = softmax[r].sum * S::kWeight;
#pragma unroll
    for (int n = 0; n < kOutputs; n++) {
      const int e = component + n * 8 + lane % 4 * 2;
      float2 result;
      // + 0: what others' weights of 0 make of a -0, all have
      result.x = sums[n].at[2 * r] / weights + 0.0f;
      result.y = sums[n].at[2 * r + 1] / weights + 0.0f;
      if (result.x - result.x != 0 || spoilt[e] < visible[r]) result.x = NAN;
      if (result.y - result.y != 0 || spoilt[e + 1] < visible[r]) result.y = NAN;
      *reinterpret_cast<float2*>(to + e) = result;
    }
    if (lane % 4 == 0 && part == 0) lse[query] = softmax[r].log_sum();
  }
}

}  // namespace

cudaError_t attend_prompt_mma(cudaStream_t stream, const AttendPromptArgs& a) {
  return with_mma_shape(a.dtype, a.shape.head_dim, [&]<class T, int kDim>() {
    for (const PromptSegment& s : a.segments) {
      const int32_t rows = s.segment.count * (a.shape.heads / a.shape.kv_heads);
      const dim3 grid(unsigned((rows + kBlockRows - 1) / kBlockRows), unsigned(a.shape.kv_heads));
      const cudaError_t error = launch(attend_prompt_mma_kernel<T, kDim>,
                                       {grid, dim3(Tile<T, kDim>::kThreads), 0, stream},
                                       chunk_of(a, s), a.out.as<float>(), a.lse.as<float>());
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

}  // namespace hydrant::cuda
