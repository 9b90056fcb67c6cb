// Feeds that keep nothing where it is computed: weights and caches come through a few staging slots
// on lanes of their own. They hold the loop to the promises of feed.hpp.
#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/engine/feed.hpp"
#include "runtime/kv/kv_cache.hpp"
#include "test/end_to_end/tiny_model.hpp"

namespace hydrant::test {

class LaneWeights final : public WeightFeed {
 public:
  LaneWeights(const TinyModel& model, Device& device, Stream& load, int slots);
  void prefetch(int stage) override;
  LayerWeights acquire(int stage, Stream& reader) override;
  void look_up(Matrix table, EmbedArgs args, Stream& reader) override;
  void release(int stage, Stream& reader) override;

 private:
  struct Slot {
    Buffer memory;
    std::unique_ptr<Event> ready, free;
    int stage = -1;
  };
  Slot* find(int stage);
  LayerWeights staged(int stage);

  Ops& ops_;
  Stream& load_;
  std::vector<ModelWeights> homes_;  // [stage]
  std::vector<Slot> slots_;
};

// Keys and values are staged; scores, positions and victims stay at home.
class LaneCaches final : public CacheFeed {
 public:
  LaneCaches(Device& device, const KvCache& cache, Stream& load, Stream& store, int slots);
  void admit(int32_t, int32_t) override {}
  void begin_step(std::span<const ActiveGroup>) override {}
  void prefetch(CacheKey key) override;
  CacheViews acquire(CacheKey key, Stream& reader) override;
  void commit(CacheKey key, StoreDecodeArgs args, Stream& writer) override;
  void commit(CacheKey key, StorePromptArgs args, Stream& writer) override;
  void release(CacheKey key, Stream& reader) override;
  void finish_step(Stream& reader) override;
  std::string failure(int32_t, int32_t) const override { return {}; }

 private:
  using Key = std::pair<int, int>;
  struct Slot {
    Buffer memory;
    std::unique_ptr<Event> ready, free;
    Key key{-1, -1};
  };
  Slot* find(Key key);
  template <class Args, class Store>
  void commit_on_lane(CacheKey key, Args args, Stream& writer, const Store& store);

  Device& device_;
  const KvCache& cache_;
  Stream &load_, &store_;
  std::vector<Slot> slots_;
  std::unique_ptr<Event> computed_, stored_;
};

}  // namespace hydrant::test
