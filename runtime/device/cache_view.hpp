// One layer's cache as kernels see it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "policies/policy.hpp"
#include "runtime/base/dtype.hpp"

namespace hydrant {

inline constexpr int32_t kRunSlots = 16;  // slots are kept and moved in runs of this many

// Keys and values of one row in one layer: [kv_head][run] of Ops::kv_run_bytes() bytes. What is
// inside a run is the backend's own affair (CPU: keys in a panel of 16 slots, then values in 16
// rows).
struct KvRuns {
  std::byte* data = nullptr;
  size_t head_bytes = 0;  // from one KV head to the next
  size_t run_bytes = 0;
};

// One layer's slots for rows of one group: places [first, first + places). A place's scores,
// positions, victims and plan are found by its number alone, whichever view it is in.
struct CacheView {
  KvRuns kv;  // of place `first`; the next one's lie place_bytes behind
  size_t place_bytes = 0;
  float* score = nullptr;       // [place, kv_head, slots]   f32, where the row is attended
  int32_t* position = nullptr;  // [place, kv_head, slots]   original position
  int32_t* victim = nullptr;  // [place, kv_head]          slot that leaves in this step; -1: nobody
  const policy::RowPlan* plans = nullptr;  // [place], host memory
  int32_t first = 0, places = 0;
  int32_t kv_heads = 0, head_dim = 0;
  int32_t slots = 0;         // per head, landing row included, a multiple of kRunSlots
  DType dtype = DType::f32;  // of keys and values: f32, f16 or bf16

  bool has(int32_t place) const { return place >= first && place - first < places; }
  KvRuns row(int32_t place) const {
    return {kv.data + size_t(place - first) * place_bytes, kv.head_bytes, kv.run_bytes};
  }
  size_t head_index(int32_t place, int32_t kv_head) const {
    return size_t(place) * size_t(kv_heads) + size_t(kv_head);
  }
  float* scores_of(int32_t place, int32_t kv_head) const {
    return score + head_index(place, kv_head) * size_t(slots);
  }
  int32_t* positions_of(int32_t place, int32_t kv_head) const {
    return position + head_index(place, kv_head) * size_t(slots);
  }
};

}  // namespace hydrant
