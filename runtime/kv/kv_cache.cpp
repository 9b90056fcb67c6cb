#include "runtime/kv/kv_cache.hpp"

#include <algorithm>
#include <initializer_list>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/copied_memory.hpp"

namespace hydrant {
namespace {

void add_product(size_t& sum, std::initializer_list<size_t> factors) {
  size_t product = 1;
  bool overflow = false;
  for (const size_t f : factors) overflow |= __builtin_mul_overflow(product, f, &product);
  if (overflow || __builtin_add_overflow(sum, product, &sum))
    fail(Fault::out_of_memory, "the KV cache would need more than 2^64 bytes");
}

// Of places that have their scores, positions and victims on the device: the first ones.
int32_t scored_in(const KvShape& shape, int32_t group) {
  return shape.host_attends ? shape.resident_in(group) : shape.rows_per_group;
}

CacheView empty_view(const KvShape& shape, size_t layer) {
  CacheView view;
  view.kv_heads = shape.kv_heads;
  view.head_dim = shape.head_dim;
  view.slots = slots_in(shape, layer);
  view.dtype = shape.dtype;
  return view;
}

void take_scores(Arena& arena, const KvShape& shape, int32_t places, CacheView& view) {
  const int64_t heads = int64_t{places} * shape.kv_heads, slots = view.slots;
  view.score = arena.take(DType::f32, {heads, slots}).as<float>();
  view.position = arena.take(DType::i32, {heads, slots}).as<int32_t>();
  view.victim = arena.take(DType::i32, {heads}).as<int32_t>();
}

// Lays out the home of one layer and group; what a measuring arena yields has no data.
CacheView take_home(Arena& arena, const KvShape& shape, size_t layer, int32_t group,
                    size_t run_bytes) {
  CacheView view = empty_view(shape, layer);
  view.places = shape.resident_in(group);
  view.kv.run_bytes = run_bytes;
  view.kv.head_bytes = run_bytes * size_t(view.slots / kRunSlots);
  view.place_bytes = view.kv.head_bytes * size_t(shape.kv_heads);
  view.kv.data = static_cast<std::byte*>(arena.take_bytes(view.place_bytes * size_t(view.places)));
  take_scores(arena, shape, scored_in(shape, group), view);
  return view;
}

// A place is found by its number, so the few on the device have room here as well.
CacheView take_host_side(Arena& arena, const KvShape& shape, size_t layer, int32_t group) {
  CacheView view = empty_view(shape, layer);
  if (scored_in(shape, group) < shape.rows_per_group)
    take_scores(arena, shape, shape.rows_per_group, view);
  return view;
}

// take(arena, layer, group) for all of them, into memory that allocate(bytes) gives.
template <class Take, class Allocate>
Buffer lay_out(const KvShape& shape, std::vector<CacheView>& views, const Take& take,
               const Allocate& allocate) {
  const auto take_all = [&](Arena& arena) {
    views.clear();
    for (size_t layer = 0; layer < shape.capacity.size(); layer++)
      for (int32_t group = 0; group < shape.groups; group++)
        views.push_back(take(arena, layer, group));
  };
  Arena measure;
  take_all(measure);
  Buffer memory = allocate(measure.used());
  Arena carve(memory);
  take_all(carve);
  return memory;
}

}  // namespace

int32_t slots_in(const KvShape& shape, size_t layer) {
  return align_up(shape.capacity[layer] + 1, kRunSlots);
}

size_t place_bytes(const KvShape& shape, size_t layer, const Ops& ops) {
  size_t bytes = 0;
  add_product(bytes, {size_t(shape.kv_heads), size_t(slots_in(shape, layer) / kRunSlots),
                      ops.kv_run_bytes(shape.dtype, shape.head_dim)});
  return bytes;
}

size_t kv_bytes(const KvShape& shape, const Ops& ops) {
  size_t resident = 0, scored = 0, bytes = 0;
  for (int32_t group = 0; group < shape.groups; group++) {
    resident += size_t(shape.resident_in(group));
    scored += size_t(scored_in(shape, group));
  }
  for (size_t layer = 0; layer < shape.capacity.size(); layer++) {
    add_product(bytes, {resident, place_bytes(shape, layer, ops)});
    add_product(bytes, {scored, size_t(shape.kv_heads), size_t(slots_in(shape, layer)),
                        sizeof(float) + sizeof(int32_t)});
  }
  return bytes;
}

size_t KvCache::host_bytes(const KvShape& shape) {
  if (!shape.host_attends) return 0;
  Arena measure;
  for (size_t layer = 0; layer < shape.capacity.size(); layer++)
    for (int32_t group = 0; group < shape.groups; group++)
      take_host_side(measure, shape, layer, group);
  return measure.used();
}

KvCache::KvCache(Device& device, const KvShape& shape)
    : shape_(shape), bytes_(kv_bytes(shape, device.ops())) {
  bytes_ += host_bytes(shape);
  const size_t run_bytes = device.ops().kv_run_bytes(shape.dtype, shape.head_dim);
  memory_ = lay_out(
      shape_, homes_,
      [&](Arena& arena, size_t layer, int32_t group) {
        return take_home(arena, shape_, layer, group, run_bytes);
      },
      [&](size_t bytes) { return device.allocate(Memory::device, bytes, "the KV cache"); });
  host_memory_ = lay_out(
      shape_, host_sides_,
      [&](Arena& arena, size_t layer, int32_t group) {
        return take_host_side(arena, shape_, layer, group);
      },
      [&](size_t bytes) {
        return allocate_for_copies(device, bytes, "scores of the KV cache on the host",
                                   "only the processor works in it");
      });
  const auto places = size_t(shape.rows_per_group);
  plans_.resize(homes_.size() * places);
  for (size_t i = 0; i < homes_.size(); i++)
    homes_[i].plans = host_sides_[i].plans = plans_.data() + i * places;
}

CacheView KvCache::home(int32_t layer, int32_t group) const {
  return homes_[size_t(layer) * size_t(shape_.groups) + size_t(group)];
}

CacheView KvCache::host_side(int32_t layer, int32_t group) const {
  return host_sides_[size_t(layer) * size_t(shape_.groups) + size_t(group)];
}

void KvCache::admit(int32_t group, int32_t place, std::span<const policy::RowPlan> plans) {
  ensure(plans.size() == shape_.capacity.size(), "a row with plans for {} layers of {}",
         plans.size(), shape_.capacity.size());
  const size_t places = size_t(shape_.rows_per_group);
  for (size_t layer = 0; layer < plans.size(); layer++) {
    const int32_t capacity = plans[layer].slots.capacity();
    ensure(0 < capacity && capacity <= shape_.capacity[layer],
           "a row of {} slots for a place of {} in layer {}", capacity, shape_.capacity[layer],
           layer);
    plans_[(layer * size_t(shape_.groups) + size_t(group)) * places + size_t(place)] = plans[layer];
  }
}

std::vector<std::vector<int32_t>> KvCache::kept(Stream& stream, int32_t layer, int32_t group,
                                                int32_t place, int32_t processed) const {
  const CacheView view =
      place < scored_in(shape_, group) ? home(layer, group) : host_side(layer, group);
  const auto stored = std::min(processed, view.plans[place].slots.capacity());
  std::vector<std::vector<int32_t>> heads(size_t(view.kv_heads),
                                          std::vector<int32_t>(size_t(stored)));
  for (int32_t head = 0; head < view.kv_heads; head++)
    stream.copy(heads[size_t(head)].data(), view.positions_of(place, head),
                size_t(stored) * sizeof(int32_t));
  stream.synchronize();
  for (std::vector<int32_t>& positions : heads) std::sort(positions.begin(), positions.end());
  return heads;
}

}  // namespace hydrant
