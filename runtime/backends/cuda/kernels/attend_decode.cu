#include "runtime/backends/cuda/kernels/attend_decode.hpp"

#include <algorithm>

#include "runtime/backends/cuda/kernels/ranks.cuh"
#include "runtime/backends/cuda/kernels/softmax.cuh"
#include "runtime/backends/cuda/warp.cuh"
#include "runtime/base/aligned.hpp"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kMostHeads = 8;  // query heads that share a read of their KV head
constexpr int32_t kLeastSplit = 64, kMostSplit = 256;  // slots that one block attends,
constexpr int32_t kSplitStep = 32;                     // and a multiple of these
constexpr int32_t kBlocksEach = 2;  // that one row is to have on a multiprocessor

// Blocks for each of a row's chunks of heads that fill the card when it is alone.
int32_t wanted_splits(const HeadShape& s, int32_t multiprocessors) {
  const int32_t group = s.heads / s.kv_heads, chunks = (group + kMostHeads - 1) / kMostHeads;
  return ceil_div(kBlocksEach * multiprocessors, s.kv_heads * chunks);
}
// By what is the row's own, so that no batch changes its bits: beside others it is cut as finely as
// alone. What that costs is its parts, (head size + 2) floats a query head and split, written and
// read again, beside the split's keys and values: an eighth of them in f16 where four heads share
// 64 slots, most of it within the second cache.
HD constexpr int32_t split_of(int32_t live, int32_t wanted) {
  const int32_t each = (live + wanted - 1) / wanted;
  const int32_t split = (each + kSplitStep - 1) / kSplitStep * kSplitStep;
  return split < kLeastSplit ? kLeastSplit : split > kMostSplit ? kMostSplit : split;
}
HD constexpr int32_t splits_of(int32_t live, int32_t wanted) {
  const int32_t split = split_of(live, wanted);
  return (live + split - 1) / split;
}
// Of any row that has no more slots: up to `wanted` while they are small, then by the largest.
int32_t most_splits(int32_t slots, int32_t wanted) {
  return std::max(ceil_div(slots, kMostSplit), std::min(ceil_div(slots, kLeastSplit), wanted));
}

struct Attend {
  Cache cache;
  const float *q, *table;  // table: null unless some row has Positions::cache
  const int32_t* ranks;
  float *out, *logits, *lse;  // logits, lse: may be null
  float* parts;               // [row of the launch, query head, split, 2 + dim]
  float scale;
  int32_t dims, heads, group;
  int32_t wanted, splits;  // of a row, see above; of the row of the launch that has most

  __device__ bool turns(const StepRow& row) const {
    return table && dims > 0 && row.plan.positions == policy::Positions::cache;
  }
  __device__ float* part(int64_t row, int64_t head, int64_t split) const {
    return parts + ((row * heads + head) * splits + split) * (cache.head_dim + 2);
  }
  // Component e of a key or query (as floats of type T) turned to a place.
  template <class T>
  __device__ float turned(const T* x, int32_t e, int32_t place) const {
    if (e >= dims) return to_float(x[e]);
    const int32_t half = dims / 2, j = e % half;
    const float* const turn = table + (int64_t{place} * half + j) * 2;
    const float a = to_float(x[j]), b = to_float(x[j + half]);
    return e < half ? a * turn[0] - b * turn[1] : b * turn[0] + a * turn[1];
  }
};

// Eight components of a key; turned ones come one by one, with their partners.
template <class T>
__device__ void load_key(const Attend& a, const T* key, int32_t first, bool turns, int32_t rank,
                         float (&to)[8]) {
  if (!turns) return load8(key + first, to);
  for (int i = 0; i < 8; i++) to[i] = a.turned(key, first + i, rank);
}

// Eight components as they lie in the cache: loads for several slots go out before one is used.
template <class T>
struct Eight {
  uint4 words[sizeof(T) / 2];

  __device__ void load(const T* at) {
    for (size_t i = 0; i < sizeof(T) / 2; i++) words[i] = reinterpret_cast<const uint4*>(at)[i];
  }
  __device__ void unpack(float (&to)[8]) const {
    T elements[8];
    memcpy(static_cast<void*>(elements), words, sizeof words);
    for (int i = 0; i < 8; i++) to[i] = to_float(elements[i]);
  }
};

// Turns a team's key where it lies, in the registers of its lanes: whole lanes are partners.
template <int kLanes>
__device__ void turn(const Attend& a, int32_t place, float (&x)[8]) {
  const int lane = int(threadIdx.x) % kLanes, half = a.dims / 2, component = lane * 8;
  const bool first = component < half;
  float other[8];
  for (int i = 0; i < 8; i++)
    other[i] = __shfl_sync(kFullWarp, x[i], lane + (first ? half : -half) / 8, kLanes);
  if (component >= a.dims) return;
  const float* const by = a.table + (int64_t{place} * half + component % half) * 2;
  for (int i = 0; i < 8; i++) {
    const float across = other[i] * by[2 * i + 1];
    x[i] = first ? x[i] * by[2 * i] - across : x[i] * by[2 * i] + across;
  }
}

// A block attends a split of the slots of a row for up to kHeads query heads of one KV head. kLanes
// lanes share a key, eight components each, so that a warp reads keys and values in whole lines;
// each such team has a softmax of its own, and the teams' are put together at the end.
template <class T, int kLanes, int kHeads>
__global__ void __launch_bounds__(kThreads) attend_kernel(StepRows rows, Attend a) {
  constexpr int kTeams = kThreads / kLanes;
  DYN_SHARED(float, shared);  // [team, head, 2 + dim]
  const StepRow& row = rows.at[blockIdx.z];
  const int32_t live = row.plan.slots.live_rows(row.position);
  const int32_t split = split_of(live, a.wanted), begin = int32_t(blockIdx.x) * split;
  if (begin >= live) return;
  const int32_t end = min(begin + split, live), dim = a.cache.head_dim;
  const int32_t chunks = (a.group + kMostHeads - 1) / kMostHeads;
  const int32_t kv_head = int32_t(blockIdx.y) / chunks;
  const int32_t head0 = int32_t(blockIdx.y) % chunks * kMostHeads;
  const int32_t heads = min(kHeads, a.group - head0);
  const int64_t query = int64_t{row.token} * a.heads + kv_head * a.group + head0;
  const int team = int(threadIdx.x) / kLanes, lane = int(threadIdx.x) % kLanes;
  const int32_t component = lane * 8;
  const bool mine = component < dim, turns = a.turns(row);
  const bool turns_lanes = turns && a.dims % 16 == 0;
  constexpr int kSlots = kHeads > 4 ? 1 : 2;  // of a team that are under way: what registers allow
  const KvHead<T> kv = a.cache.head<T>(row.place, kv_head);
  const int32_t* const ranks =
      a.ranks + (int64_t{blockIdx.z} * a.cache.kv_heads + kv_head) * a.cache.slots;

  float q[kHeads][8] = {}, sums[kHeads][8] = {};
  Softmax softmax[kHeads];
  for (int h = 0; h < kHeads; h++)
    if (mine && h < heads) {
      const float* const from = a.q + (query + h) * dim;
      load_key(a, from, component, turns, live - 1, q[h]);
      for (float& x : q[h]) x *= a.scale;
    }
  for (int32_t base = begin + team; base - team < end; base += kSlots * kTeams) {
    Eight<T> keys[kSlots] = {}, values[kSlots] = {};
    int32_t rank[kSlots] = {};
#pragma unroll
    for (int i = 0; i < kSlots; i++) {
      const int32_t slot = base + i * kTeams;
      if (slot >= end) continue;
      if (turns) rank[i] = ranks[slot];
      if (!mine) continue;
      keys[i].load(static_cast<const T*>(kv.key(slot)) + component);
      values[i].load(static_cast<const T*>(kv.value(slot)) + component);
    }
#pragma unroll
    for (int s = 0; s < kSlots; s++) {
      const int32_t slot = base + s * kTeams;
      const bool valid = slot < end;
      float key[8], value[8];
      keys[s].unpack(key);
      values[s].unpack(value);
      if (turns_lanes)
        turn<kLanes>(a, rank[s], key);
      else if (turns && mine && valid)
        load_key(a, static_cast<const T*>(kv.key(slot)), component, true, rank[s], key);
      for (int h = 0; h < kHeads; h++) {
        float logit = 0;
        for (int i = 0; i < 8; i++) logit = fmaf(q[h][i], key[i], logit);
        for (int lanes = kLanes / 2; lanes > 0; lanes /= 2)
          logit += __shfl_xor_sync(kFullWarp, logit, lanes);
        if (!valid || h >= heads) continue;
        if (a.logits && lane == 0) a.logits[(query + h) * a.cache.slots + slot] = logit;
        const float max = fmaxf(softmax[h].max, logit), old = softmax[h].rescale(max);
        const float weight = Softmax::weight(logit, max);
        softmax[h].max = max;
        softmax[h].sum = fmaf(softmax[h].sum, old, weight);
        for (int i = 0; i < 8; i++) sums[h][i] = fmaf(sums[h][i], old, weight * value[i]);
      }
    }
  }

  const int32_t stride = dim + 2;
  for (int h = 0; h < kHeads; h++) {
    if (h >= heads || !mine) continue;
    float* const to = shared + (team * kHeads + h) * stride;
    if (lane == 0) to[0] = softmax[h].max, to[1] = softmax[h].sum;
    for (int i = 0; i < 8; i++) to[2 + component + i] = sums[h][i];
  }
  __syncthreads();
  for (int32_t i = int32_t(threadIdx.x); i < heads * stride; i += kThreads) {
    const int32_t h = i / stride, at = i % stride;
    const float* const first = shared + h * stride;
    Softmax all;
    for (int t = 0; t < kTeams; t++) all.max = fmaxf(all.max, first[t * kHeads * stride]);
    float sum = 0;
    for (int t = 0; t < kTeams; t++) {
      const Softmax part{first[t * kHeads * stride], 0};
      sum = fmaf(first[t * kHeads * stride + max(at, 1)], part.rescale(all.max), sum);
    }
    a.part(blockIdx.z, kv_head * a.group + head0 + h, blockIdx.x)[at] = at == 0 ? all.max : sum;
  }
}

// A block for each query head and row puts its splits together.
__global__ void __launch_bounds__(kThreads) join_kernel(StepRows rows, Attend a) {
  const StepRow& row = rows.at[blockIdx.y];
  const int32_t dim = a.cache.head_dim, live = row.plan.slots.live_rows(row.position);
  const int32_t splits = splits_of(live, a.wanted);
  const auto head = int32_t(blockIdx.x);
  Softmax all;
  for (int32_t s = 0; s < splits; s++) all.max = fmaxf(all.max, a.part(blockIdx.y, head, s)[0]);
  const auto total = [&](int32_t at) {
    float sum = 0;
    for (int32_t s = 0; s < splits; s++) {
      const float* const part = a.part(blockIdx.y, head, s);
      sum = fmaf(part[at], Softmax{part[0], 0}.rescale(all.max), sum);
    }
    return sum;
  };
  all.sum = total(1);
  const int64_t query = int64_t{row.token} * a.heads + head;
  for (int32_t e = int32_t(threadIdx.x); e < dim; e += kThreads)
    a.out[query * dim + e] = total(2 + e) / all.sum;
  if (a.lse && threadIdx.x == 0) a.lse[query] = all.log_sum();
}

size_t part_floats(const HeadShape& s, int64_t rows, int32_t slots, int32_t wanted) {
  return size_t(rows) * size_t(s.heads) * size_t(most_splits(slots, wanted)) *
         size_t(s.head_dim + 2);
}

template <class T, int kLanes, int kHeads>
cudaError_t attend_as(cudaStream_t stream, const StepRows& rows, unsigned count, const Attend& a) {
  const int32_t chunks = (a.group + kMostHeads - 1) / kMostHeads;
  const dim3 grid(unsigned(a.splits), unsigned(a.cache.kv_heads * chunks), count);
  const size_t shared =
      size_t(kThreads / kLanes) * kHeads * size_t(a.cache.head_dim + 2) * sizeof(float);
  return launch(attend_kernel<T, kLanes, kHeads>, {grid, dim3(kThreads), shared, stream}, rows, a);
}

template <class T, int kLanes>
cudaError_t attend_lanes(cudaStream_t stream, const StepRows& rows, unsigned count,
                         const Attend& a) {
  if (a.group == 1) return attend_as<T, kLanes, 1>(stream, rows, count, a);
  if (a.group == 2) return attend_as<T, kLanes, 2>(stream, rows, count, a);
  if (a.group <= 4) return attend_as<T, kLanes, 4>(stream, rows, count, a);
  return attend_as<T, kLanes, kMostHeads>(stream, rows, count, a);
}

}  // namespace

size_t attend_decode_bytes(const HeadShape& shape, int64_t rows, int32_t slots, bool ranks,
                           int32_t multiprocessors) {
  const auto most = std::min<int64_t>(rows, StepRows::kMost);
  const size_t rank_words =
      ranks ? size_t(most) * size_t(shape.kv_heads) * size_t(slots) : size_t{0};
  const int32_t wanted = wanted_splits(shape, multiprocessors);
  return (part_floats(shape, most, slots, wanted) + rank_words) * sizeof(float);
}

cudaError_t attend_decode(cudaStream_t stream, KernelFault* fault, const AttendDecodeArgs& args,
                          void* scratch, int32_t multiprocessors) {
  const CacheView& v = args.cache;
  const int32_t wanted = wanted_splits(args.shape, multiprocessors);
  const auto most = std::min<int64_t>(int64_t(args.segments.size()), StepRows::kMost);
  auto* const parts = static_cast<float*>(scratch);
  auto* const ranks =
      reinterpret_cast<int32_t*>(parts + part_floats(args.shape, most, v.slots, wanted));
  const bool by_rank = args.ranks.dims > 0 && args.ranks.table;
  Attend a{Cache(v),
           args.q.as<float>(),
           by_rank ? args.ranks.table.as<float>() : nullptr,
           ranks,
           args.out.as<float>(),
           args.logits.as<float>(),
           args.lse.as<float>(),
           parts,
           args.scale,
           args.ranks.dims,
           args.shape.heads,
           args.shape.heads / args.shape.kv_heads,
           wanted,
           0};
  return each_rows(args.segments, v.plans, [&](const StepRows& rows, unsigned count) {
    const bool turns = by_rank && std::any_of(rows.at, rows.at + count, [](const StepRow& r) {
                         return r.plan.positions == policy::Positions::cache;
                       });
    a.splits = 1;
    for (const StepRow& r : std::span(rows.at, count))
      a.splits = std::max(a.splits, splits_of(r.plan.slots.live_rows(r.position), wanted));
    cudaError_t error = cudaSuccess;
    if (turns) {
      error =
          launch(rank_kernel, {dim3(unsigned(v.kv_heads), count), dim3(kRankThreads), 0, stream},
                 rows, Cache(v), ranks, args.ranks.table.shape[0], fault);
    }
    if (error != cudaSuccess) return error;
    error = with_kv_type(v.dtype, [&]<class T>(T) {
      if (v.head_dim <= 64) return attend_lanes<T, 8>(stream, rows, count, a);
      if (v.head_dim <= 128) return attend_lanes<T, 16>(stream, rows, count, a);
      return attend_lanes<T, 32>(stream, rows, count, a);
    });
    if (error != cudaSuccess) return error;
    return launch(join_kernel, {dim3(unsigned(a.heads), count), dim3(kThreads), 0, stream}, rows,
                  a);
  });
}

}  // namespace hydrant::cuda
