#include "runtime/engine/resident_feed.hpp"

#include <algorithm>

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

}  // namespace hydrant
