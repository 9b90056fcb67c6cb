#include "runtime/engine/resident_feed.hpp"

namespace hydrant {

void ResidentCaches::commit(CacheKey key, StoreDecodeArgs args, Stream& writer) {
  args.to = cache_.home(key.layer, key.group);
  ops_.store_decode(writer, args);
}

void ResidentCaches::commit(CacheKey key, StorePromptArgs args, Stream& writer) {
  args.to = cache_.home(key.layer, key.group);
  ops_.store_prompt(writer, args);
}

}  // namespace hydrant
