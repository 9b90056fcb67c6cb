// Owns in host memory what a CacheView shows: one layer's slots of one group of rows.
#pragma once
#include <cstddef>
#include <vector>

#include "runtime/backends/cpu/kernels/kv_layout.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/device/cache_view.hpp"

namespace hydrant::test {

// Key-value runs of `kv_heads` heads of one row.
struct Runs {
  std::vector<std::byte> bytes;
  KvRuns view;

  Runs(cpu::KvLayout layout, int32_t kv_heads, int32_t slots) {
    view.run_bytes = layout.run_bytes();
    view.head_bytes = size_t(ceil_div(slots, kRunSlots)) * view.run_bytes;
    bytes.resize(view.head_bytes * size_t(kv_heads));
    view.data = bytes.data();
  }
  std::byte* head(int32_t kv_head) { return view.data + size_t(kv_head) * view.head_bytes; }
};

class CacheHome {
 public:
  // Rows may have up to `capacity` slots and their landing row.
  CacheHome(cpu::KvLayout layout, int32_t places, int32_t kv_heads, int32_t capacity)
      : plans(size_t(places)) {
    view_.places = places;
    view_.kv_heads = kv_heads;
    view_.head_dim = layout.head_dim;
    view_.dtype = layout.dtype;
    view_.slots = align_up(capacity + 1, kRunSlots);
    const Runs row(layout, kv_heads, view_.slots);
    view_.kv = row.view;
    view_.place_bytes = row.bytes.size();
    bytes.resize(view_.place_bytes * size_t(places));
    scores_.resize(size_t(places) * size_t(kv_heads) * size_t(view_.slots), -1000.0f);
    positions_.resize(scores_.size(), -1);
    victims_.resize(size_t(places) * size_t(kv_heads), -7);
  }

  CacheView view() {
    CacheView v = view_;
    v.kv.data = bytes.data();
    v.score = scores_.data();
    v.position = positions_.data();
    v.victim = victims_.data();
    v.plans = plans.data();
    return v;
  }

  std::vector<policy::RowPlan> plans;  // [place]
  std::vector<std::byte> bytes;

 private:
  CacheView view_;
  std::vector<float> scores_;
  std::vector<int32_t> positions_, victims_;
};

inline std::byte* head_of(const CacheView& view, int32_t place, int32_t kv_head) {
  return view.row(place).data + size_t(kv_head) * view.kv.head_bytes;
}

}  // namespace hydrant::test
