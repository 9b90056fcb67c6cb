// Owns in host memory what a CacheView shows: one layer's slots of one group of rows.
#pragma once
#include <cstddef>
#include <vector>

#include "runtime/base/aligned.hpp"
#include "runtime/device/cache_view.hpp"
#include "test/support/backend_fixture.hpp"
#include "test/support/kv_content.hpp"

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
  KvRuns on_device(Bench& bench) const {
    KvRuns there = view;
    there.data = static_cast<std::byte*>(bench.put_bytes(bytes.data(), bytes.size()));
    return there;
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

  // Calls f(view) for a copy of all of it on the bench's device, and takes the copy back.
  template <class F>
  void on_device(Bench& bench, const F& f) {
    CacheView v = view_;
    v.kv.data = static_cast<std::byte*>(bench.put_bytes(bytes.data(), bytes.size()));
    v.score = static_cast<float*>(bench.put_bytes(scores_.data(), scores_.size() * 4));
    v.position = static_cast<int32_t*>(bench.put_bytes(positions_.data(), scores_.size() * 4));
    v.victim = static_cast<int32_t*>(bench.put_bytes(victims_.data(), victims_.size() * 4));
    v.plans = plans.data();
    f(v);
    bench.get_bytes(bytes.data(), v.kv.data, bytes.size());
    bench.get_bytes(scores_.data(), v.score, scores_.size() * 4);
    bench.get_bytes(positions_.data(), v.position, scores_.size() * 4);
    bench.get_bytes(victims_.data(), v.victim, victims_.size() * 4);
  }

  std::vector<policy::RowPlan> plans;  // [place]
  std::vector<std::byte> bytes;

 private:
  CacheView view_;
  std::vector<float> scores_;
  std::vector<int32_t> positions_, victims_;
};

// Ops::store_prompt on a device: the prompt's runs are `kv` (null: the row's home itself) and `raw`
// (null: none); its statistics are the host's.
inline void store_prompt(Bench& bench, CacheHome& home, StorePromptArgs args, const Runs* kv,
                         const Runs* raw) {
  PromptSegment& p = args.prompt;
  const auto columns = [&](float* from) {
    const size_t bytes = size_t(p.stats_stride) * size_t(args.shape.kv_heads) * sizeof(float);
    return from ? static_cast<float*>(bench.put_bytes(from, bytes)) : nullptr;
  };
  p.sum = columns(p.sum);
  p.last = columns(p.last);
  home.on_device(bench, [&](const CacheView& view) {
    args.to = view;
    p.kv = kv ? kv->on_device(bench) : view.row(p.segment.place);
    p.raw = raw ? raw->on_device(bench) : KvRuns{};
    bench.ops().store_prompt(*bench.stream, args);
  });
}

inline std::byte* head_of(const CacheView& view, int32_t place, int32_t kv_head) {
  return view.row(place).data + size_t(kv_head) * view.kv.head_bytes;
}

}  // namespace hydrant::test
