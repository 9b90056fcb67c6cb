#include "runtime/backends/cuda/kernels/split.hpp"

#include "runtime/backends/cuda/kernels/kv.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 64;

struct Joint {
  const float *qkv, *table;  // null table: no rotation
  float* q;
  int32_t dims;
  HeadShape shape;

  template <class Args>
  explicit Joint(const Args& a)
      : qkv(a.qkv.template as<float>()),
        table(a.rotary.dims > 0 ? a.rotary.table.template as<float>() : nullptr),
        q(a.q.template as<float>()),
        dims(a.rotary.dims),
        shape(a.shape) {}
  // Queries, then keys, then values of a token.
  __device__ const float* head(int64_t token, int32_t h) const {
    return qkv + (token * (shape.heads + 2 * shape.kv_heads) + h) * shape.head_dim;
  }
  // Component e of the head, turned as the token's place says.
  __device__ float turned(int64_t token, int32_t h, int32_t e, bool turns) const {
    const float* const x = head(token, h);
    if (!turns || !table || e >= dims) return x[e];
    const int32_t half = dims / 2, j = e % half;
    const float* const turn = table + (token * half + j) * 2;
    return e < half ? x[j] * turn[0] - x[j + half] * turn[1]
                    : x[j + half] * turn[0] + x[j] * turn[1];
  }
};

// One head of one token, a thread for some of its components.
template <class T>
__device__ void split_head(const Joint& j, int64_t token, int32_t h, int64_t slot, bool turns,
                           const KvRuns& kv, const KvRuns& raw) {
  const int32_t d = j.shape.head_dim, kv_head = h - j.shape.heads;
  for (int32_t e = int32_t(threadIdx.x); e < d; e += kThreads) {
    if (kv_head < 0) {
      j.q[(token * j.shape.heads + h) * d + e] = j.turned(token, h, e, turns);
    } else if (kv_head < j.shape.kv_heads) {
      KvHead<T>(kv, kv_head, d).key(slot)[e] = from_float<T>(j.turned(token, h, e, turns));
      if (raw.data) KvHead<T>(raw, kv_head, d).key(slot)[e] = from_float<T>(j.head(token, h)[e]);
    } else {
      const int32_t of = kv_head - j.shape.kv_heads;
      KvHead<T>(kv, of, d).value(slot)[e] = from_float<T>(j.head(token, h)[e]);
    }
  }
}

// A block for each token and head.
template <class T>
__global__ void __launch_bounds__(kThreads) split_prompt_kernel(Joint j, PromptSegment s) {
  const int64_t token = int64_t{s.segment.token} + blockIdx.x;
  split_head<T>(j, token, int32_t(blockIdx.y), int64_t{s.segment.first} + blockIdx.x, true, s.kv,
                s.raw);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    split_decode_kernel(Joint j, StepRows rows, Cache cache) {
  const StepRow& row = rows.at[blockIdx.x];
  const int32_t h = int32_t(blockIdx.y), landing = row.plan.slots.landing_of(row.position);
  KvRuns runs = cache.kv;
  runs.data += size_t(row.place - cache.first) * cache.place_bytes;
  split_head<T>(j, row.token, h, landing, row.plan.positions == policy::Positions::original, runs,
                {});
  if (h < cache.kv_heads && threadIdx.x == 0)
    cache.positions_of(row.place, h)[landing] = row.position;
}

unsigned heads(const HeadShape& s) { return unsigned(s.heads + 2 * s.kv_heads); }

}  // namespace

cudaError_t split_prompt(cudaStream_t stream, const SplitPromptArgs& a) {
  return with_kv_type(a.dtype, [&]<class T>(T) {
    for (const PromptSegment& s : a.segments) {
      const cudaError_t error =
          launch(split_prompt_kernel<T>,
                 {dim3(unsigned(s.segment.count), heads(a.shape)), dim3(kThreads), 0, stream},
                 Joint(a), s);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

cudaError_t split_decode(cudaStream_t stream, const SplitDecodeArgs& a) {
  return with_kv_type(a.cache.dtype, [&]<class T>(T) {
    return each_rows(a.segments, a.cache.plans, [&](const StepRows& rows, unsigned count) {
      return launch(split_decode_kernel<T>,
                    {dim3(count, heads(a.shape)), dim3(kThreads), 0, stream}, Joint(a), rows,
                    Cache(a.cache));
    });
  });
}

}  // namespace hydrant::cuda
