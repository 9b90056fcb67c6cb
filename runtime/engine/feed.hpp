// What the loop asks for. It does not know where weights and caches live; offload/ and
// resident_feed do.
#pragma once
#include <span>

#include "runtime/device/ops.hpp"
#include "runtime/model/weights.hpp"

namespace hydrant {

class WeightFeed {
 public:
  virtual ~WeightFeed() = default;
  virtual void prefetch(int stage) = 0;  // starts moving the stage's weights; returns at once
  // The reader's later work sees the weights. The views hold until release.
  virtual LayerWeights acquire(int stage, Stream& reader) = 0;
  // Between acquire and release of stage 0: rows of one of its tables, which the feed puts into the
  // arguments. Few rows are wanted, so a table may stay where it is. The indices are host memory
  // and stay as they are until the step is over.
  virtual void look_up(Matrix table, EmbedArgs args, Stream& reader) = 0;
  virtual void release(int stage, Stream& reader) = 0;  // the reader's last use has been enqueued
};

struct CacheKey {
  int layer = 0, group = 0;
};

// For each (layer, group) of a step: acquire, at most one commit of rows that decode, one commit of
// each prompt that ends, release.
class CacheFeed {
 public:
  virtual ~CacheFeed() = default;
  virtual void prefetch(CacheKey key) = 0;  // starts moving the layer's cache; returns at once
  // The reader's later work sees the cache, all that was committed before included. The view holds
  // until release.
  virtual CacheView acquire(CacheKey key, Stream& reader) = 0;
  // store_cache: takes home what the `writer` lane has computed. The arguments' `to` is filled in
  // by the feed. What they point to outside the cache is not written by the writer's later work
  // before the next acquire or finish_step.
  virtual void commit(CacheKey key, StoreDecodeArgs args, Stream& writer) = 0;
  virtual void commit(CacheKey key, StorePromptArgs args, Stream& writer) = 0;
  virtual void release(CacheKey key, Stream& reader) = 0;  // the last use has been enqueued
  // The reader's later work finds all that was committed at home.
  virtual void finish_step(Stream& reader) = 0;
};

}  // namespace hydrant
