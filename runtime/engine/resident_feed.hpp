// The feeds when everything stays on the device: nothing moves, nobody waits.
#pragma once
#include "runtime/engine/feed.hpp"
#include "runtime/model/load_weights.hpp"

namespace hydrant {

class ResidentWeights final : public WeightFeed {
 public:
  // Both must outlive this.
  ResidentWeights(Ops& ops, const ModelWeights& weights) : ops_(ops), weights_(weights) {}
  void prefetch(int) override {}
  LayerWeights acquire(int stage, Stream&) override { return weights_.stage(stage); }
  void look_up(Matrix table, EmbedArgs args, Stream& reader) override {
    args.table = weights_.stage(0)[table];
    ops_.embed(reader, args);
  }
  void release(int, Stream&) override {}

 private:
  Ops& ops_;
  const ModelWeights& weights_;
};

// Rows are moved within their home by the lane that computed them, so no edge is needed.
class ResidentCaches final : public CacheFeed {
 public:
  ResidentCaches(Ops& ops, const KvCache& cache) : ops_(ops), cache_(cache) {}
  void admit(int32_t, int32_t) override {}
  void begin_step(std::span<const ActiveGroup>) override {}
  void prefetch(CacheKey) override {}
  CacheViews acquire(CacheKey key, Stream&) override;
  void commit(CacheKey key, StoreDecodeArgs args, Stream& writer) override;
  void commit(CacheKey key, StorePromptArgs args, Stream& writer) override;
  void release(CacheKey, Stream&) override {}
  void finish_step(Stream&) override {}
  std::string failure(int32_t, int32_t) const override { return {}; }

 private:
  Ops& ops_;
  const KvCache& cache_;
};

class ResidentHidden final : public HiddenFeed {
 public:
  ResidentHidden(Device& device, const HiddenShape& shape);
  static size_t bytes(const HiddenShape& shape);
  void begin_step(std::span<const PieceTokens> pieces) override { pieces_ = pieces; }
  Tensor acquire(int stage, size_t piece, Stream& reader) override;
  void release(int, size_t, Stream&) override {}

 private:
  Buffer memory_;
  Tensor all_;  // [step tokens, hidden]
  std::span<const PieceTokens> pieces_;
};

}  // namespace hydrant
