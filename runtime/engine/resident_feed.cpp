#include "runtime/engine/resident_feed.hpp"

#include <algorithm>

#include "runtime/engine/views.hpp"

namespace hydrant {

CacheViews ResidentCaches::acquire(CacheKey key, Stream&) {
  CacheViews views;
  views.add(cache_.home(key.layer, key.group));
  return views;
}

void ResidentCaches::commit(CacheKey key, StoreDecodeArgs args, Stream& writer) {
  args.to = cache_.home(key.layer, key.group);
  // A token that displaces nobody has landed in its slot already.
  const bool moves = std::any_of(args.segments.begin(), args.segments.end(), [&](const Segment& s) {
    return args.to.plans[s.place].slots.evicts_at(s.first);
  });
  if (moves) ops_.store_decode(writer, args);
}

void ResidentCaches::commit(CacheKey key, StorePromptArgs args, Stream& writer) {
  args.to = cache_.home(key.layer, key.group);
  ops_.store_prompt(writer, args);
}

ResidentHidden::ResidentHidden(Device& device, const HiddenShape& shape)
    : memory_(device.allocate(Memory::device, bytes(shape), "hidden states")) {
  all_ = Arena(memory_).take(DType::f32, {shape.tokens, shape.width});
}

size_t ResidentHidden::bytes(const HiddenShape& shape) {
  Arena size;
  size.take(DType::f32, {shape.tokens, shape.width});
  return size.used();
}

Tensor ResidentHidden::acquire(int, size_t piece, Stream&) {
  return rows_of(all_, pieces_[piece].token, pieces_[piece].tokens);
}

}  // namespace hydrant
