#include "test/end_to_end/lane_feeds.hpp"

#include <algorithm>

#include "runtime/base/error.hpp"

namespace hydrant::test {
namespace {

const std::byte* base_of(const LayerWeights& weights) {
  const std::byte* base = nullptr;
  const auto lower = [&](const void* p) {
    const auto* at = static_cast<const std::byte*>(p);
    if (at && (!base || at < base)) base = at;
  };
  for (const Weight& w : weights.matrices) lower(w.panels);
  for (const ConstTensor& v : weights.vectors) lower(v.data);
  return base;
}

TinyModel only_stage(const TinyModel& model, const TinyStage& stage) {
  return {model.spec, {stage}};
}

}  // namespace

LaneWeights::LaneWeights(const TinyModel& model, Device& device, Stream& load, int slots)
    : ops_(device.ops()), load_(load) {
  size_t largest = 0;
  for (const TinyStage& stage : model.stages) {
    homes_.push_back(on_device(only_stage(model, stage), device));
    largest = std::max(largest, homes_.back().bytes());
  }
  for (int i = 0; i < slots; i++)
    slots_.push_back({device.allocate(Memory::device, largest, "weight slot"), device.make_event(),
                      device.make_event()});
}

LaneWeights::Slot* LaneWeights::find(int stage) {
  const auto at = std::find_if(slots_.begin(), slots_.end(),
                               [&](const Slot& slot) { return slot.stage == stage; });
  return at == slots_.end() ? nullptr : &*at;
}

void LaneWeights::prefetch(int stage) {
  Slot* const slot = find(-1);
  if (find(stage) || !slot) return;
  slot->stage = stage;
  const LayerWeights& home = homes_[size_t(stage)].stage(0);
  const std::byte* const base = base_of(home);
  load_.wait(*slot->free);
  // The stage's weights begin the home's allocation.
  load_.copy(slot->memory.data(), base, homes_[size_t(stage)].bytes());
  load_.record(*slot->ready);
}

LayerWeights LaneWeights::acquire(int stage, Stream& reader) {
  prefetch(stage);
  Slot* const slot = find(stage);
  ensure(slot != nullptr, "no slot is free for stage {}", stage);
  reader.wait(*slot->ready);
  return staged(stage);
}

void LaneWeights::look_up(Matrix table, EmbedArgs args, Stream& reader) {
  args.table = staged(0)[table];
  ops_.embed(reader, args);
}

LayerWeights LaneWeights::staged(int stage) {
  const Slot* const slot = find(stage);
  LayerWeights weights = homes_[size_t(stage)].stage(0);
  const std::byte* const base = base_of(weights);
  const auto moved = [&](const void* p) -> const void* {
    if (!p) return nullptr;
    return static_cast<std::byte*>(slot->memory.data()) + (static_cast<const std::byte*>(p) - base);
  };
  for (Weight& w : weights.matrices) w.panels = moved(w.panels);
  for (ConstTensor& v : weights.vectors) v.data = moved(v.data);
  return weights;
}

void LaneWeights::release(int stage, Stream& reader) {
  Slot* const slot = find(stage);
  ensure(slot != nullptr, "stage {} is released but was not acquired", stage);
  reader.record(*slot->free);
  slot->stage = -1;
}

LaneCaches::LaneCaches(Device& device, const KvCache& cache, Stream& load, Stream& store, int slots)
    : device_(device),
      cache_(cache),
      load_(load),
      store_(store),
      computed_(device.make_event()),
      stored_(device.make_event()) {
  const CacheView home = cache.home(0, 0);
  for (int i = 0; i < slots; i++)
    slots_.push_back(
        {device.allocate(Memory::device, home.place_bytes * size_t(home.places), "cache slot"),
         device.make_event(), device.make_event()});
}

LaneCaches::Slot* LaneCaches::find(Key key) {
  const auto at =
      std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.key == key; });
  return at == slots_.end() ? nullptr : &*at;
}

void LaneCaches::prefetch(CacheKey key) {
  Slot* const slot = find({-1, -1});
  if (find({key.layer, key.group}) || !slot) return;
  slot->key = {key.layer, key.group};
  const CacheView home = cache_.home(key.layer, key.group);
  load_.wait(*slot->free);
  load_.copy(slot->memory.data(), home.kv.data, slot->memory.bytes());
  load_.record(*slot->ready);
}

CacheViews LaneCaches::acquire(CacheKey key, Stream& reader) {
  prefetch(key);
  Slot* const slot = find({key.layer, key.group});
  ensure(slot != nullptr, "no slot is free for layer {}", key.layer);
  reader.wait(*slot->ready);
  reader.wait(*stored_);  // prompts' arguments may be written again
  CacheView view = cache_.home(key.layer, key.group);
  view.kv.data = static_cast<std::byte*>(slot->memory.data());
  CacheViews views;
  views.add(view);
  return views;
}

template <class Args, class Store>
void LaneCaches::commit_on_lane(CacheKey key, Args args, Stream& writer, const Store& store) {
  args.to = cache_.home(key.layer, key.group);
  writer.record(*computed_);
  store_.wait(*computed_);
  store(args);
  store_.record(*stored_);
}

void LaneCaches::commit(CacheKey key, StoreDecodeArgs args, Stream& writer) {
  commit_on_lane(key, args, writer,
                 [&](const StoreDecodeArgs& a) { device_.ops().store_decode(store_, a); });
}

void LaneCaches::commit(CacheKey key, StorePromptArgs args, Stream& writer) {
  commit_on_lane(key, args, writer,
                 [&](const StorePromptArgs& a) { device_.ops().store_prompt(store_, a); });
}

// The last use was before the last commit, and the store lane has waited for that.
void LaneCaches::release(CacheKey key, Stream&) {
  Slot* const slot = find({key.layer, key.group});
  ensure(slot != nullptr, "layer {} is released but was not acquired", key.layer);
  store_.record(*slot->free);
  slot->key = {-1, -1};
}

void LaneCaches::finish_step(Stream& reader) { reader.wait(*stored_); }

}  // namespace hydrant::test
