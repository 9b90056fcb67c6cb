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
  virtual void release(int stage, Stream& reader) = 0;  // the reader's last use has been enqueued
};

struct CacheKey {
  int layer = 0, group = 0;
};

class CacheFeed {
 public:
  virtual ~CacheFeed() = default;
  virtual void prefetch(CacheKey key) = 0;
  virtual CacheView acquire(CacheKey key, Stream& reader) = 0;
  // store_cache: the end of a decode step's, or of one prompt's, work on this layer's cache of this
  // group. `writer` is the lane that computed it; the arguments' `to` is filled in by the feed.
  virtual void commit(CacheKey key, StoreDecodeArgs args, Stream& writer) = 0;
  virtual void commit(CacheKey key, StorePromptArgs args, Stream& writer) = 0;
};

}  // namespace hydrant
