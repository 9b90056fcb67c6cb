// Keys and values as kernels find them. A run holds the keys of 16 slots, one behind another, then
// their values: a slot's key is read in loads of 16 bytes, and so is its value.
#pragma once
#include <span>

#include "runtime/backends/cuda/kernels/elements.cuh"
#include "runtime/device/cache_view.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cuda {

template <class T>
struct KvHead {
  std::byte* first;  // run
  size_t run_bytes;
  int32_t dim;

  __device__ KvHead(const KvRuns& runs, int32_t kv_head, int32_t head_dim)
      : first(runs.data + size_t(kv_head) * runs.head_bytes),
        run_bytes(runs.run_bytes),
        dim(head_dim) {}
  __device__ T* key(int64_t slot) const {
    return reinterpret_cast<T*>(first + size_t(slot / kRunSlots) * run_bytes) +
           slot % kRunSlots * dim;
  }
  __device__ T* value(int64_t slot) const { return key(slot) + int64_t{kRunSlots} * dim; }
};

// A CacheView without what lies on the host.
struct Cache {
  KvRuns kv;
  size_t place_bytes;
  float* score;
  int32_t *position, *victim;
  int32_t first, kv_heads, head_dim, slots;

  explicit Cache(const CacheView& v)
      : kv(v.kv),
        place_bytes(v.place_bytes),
        score(v.score),
        position(v.position),
        victim(v.victim),
        first(v.first),
        kv_heads(v.kv_heads),
        head_dim(v.head_dim),
        slots(v.slots) {}
  template <class T>
  __device__ KvHead<T> head(int32_t place, int32_t kv_head) const {
    KvRuns row = kv;
    row.data += size_t(place - first) * place_bytes;
    return {row, kv_head, head_dim};
  }
  __device__ size_t head_index(int32_t place, int32_t kv_head) const {
    return size_t(place) * size_t(kv_heads) + size_t(kv_head);
  }
  __device__ float* scores_of(int32_t place, int32_t kv_head) const {
    return score + head_index(place, kv_head) * size_t(slots);
  }
  __device__ int32_t* positions_of(int32_t place, int32_t kv_head) const {
    return position + head_index(place, kv_head) * size_t(slots);
  }
};

// A row's decode step. Rows travel with the launch, as many as a kernel's 4 KiB of arguments take:
// nothing is uploaded, and nothing has to stay.
struct StepRow {
  policy::RowPlan plan;
  int32_t token, place, position;
};
struct StepRows {
  static constexpr int kMost = 96;
  StepRow at[kMost];
};

// Calls launch(rows, count) for as many rows at a time as fit.
template <class F>
cudaError_t each_rows(std::span<const Segment> segments, const policy::RowPlan* plans,
                      const F& launch_rows) {
  StepRows rows;
  for (size_t begin = 0; begin < segments.size(); begin += StepRows::kMost) {
    const auto part =
        segments.subspan(begin, std::min<size_t>(StepRows::kMost, segments.size() - begin));
    for (size_t i = 0; i < part.size(); i++)
      rows.at[i] = {plans[part[i].place], part[i].token, part[i].place, part[i].first};
    if (const cudaError_t error = launch_rows(rows, unsigned(part.size())); error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

}  // namespace hydrant::cuda
