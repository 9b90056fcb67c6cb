// What the loop asks for: weights and caches, wherever their feeds keep them.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/kv/kv_cache.hpp"
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

// A group that takes part in a step, and its rows that decode, in order of their places.
struct ActiveGroup {
  int32_t group = 0;
  std::span<const Segment> decode;
};

// Where rows are attended: by the device that computes all else, or by another one on the host.
enum class Side : uint8_t { device, host };

struct AttendedView : CacheView {
  Side side = Side::device;
};

// One (layer, group) of the cache: its places in order, in a view for each home that has some.
// Those of Side::device come first.
class CacheViews {
 public:
  void add(const CacheView& view, Side side = Side::device) {
    if (view.places > 0) views_[count_++] = {view, side};
  }
  const AttendedView* begin() const { return views_.data(); }
  const AttendedView* end() const { return begin() + count_; }
  const AttendedView& of(int32_t place) const;  // the view that has it

 private:
  std::array<AttendedView, 3> views_;  // device, host, disk
  size_t count_ = 0;
};

// The lane on which rows of Side::host are attended, and the ways there and back.
class HostLane {
 public:
  virtual ~HostLane() = default;
  virtual Stream& stream() = 0;  // of CacheHomes::host()
  // The lane's later work finds in `to` what the compute lane's earlier work has left in `from`.
  virtual void to_host(Tensor to, ConstTensor from, Stream& compute) = 0;
  // The lane's earlier work has attended all that came.
  virtual void attended() = 0;
  // The compute lane's later work finds in `to` what was in `from` by then, and may overwrite what
  // has been read by then.
  virtual void to_device(Tensor to, ConstTensor from, Stream& compute) = 0;
};

// For each step: begin_step; layer by layer, for each active group in order: acquire, of each view
// at most one commit of rows that decode, one commit of each prompt that ends, release;
// finish_step. The host has waited for what finish_step was given before it begins the next.
class CacheFeed {
 public:
  virtual ~CacheFeed() = default;
  // A new row has been given the place.
  virtual void admit(int32_t group, int32_t place) = 0;
  // The lists hold until the step is over.
  virtual void begin_step(std::span<const ActiveGroup> groups) = 0;
  virtual void prefetch(CacheKey key) = 0;  // starts moving the layer's cache; returns at once
  // The reader's later work sees the cache, all that was committed before included. The views hold
  // until release.
  virtual CacheViews acquire(CacheKey key, Stream& reader) = 0;
  // store_cache: takes home what the `writer` lane has computed. The arguments' `to` is filled in
  // by the feed. What they point to outside the cache is not written by the writer's later work
  // before the next acquire or finish_step.
  virtual void commit(CacheKey key, StoreDecodeArgs args, Stream& writer) = 0;
  virtual void commit(CacheKey key, StorePromptArgs args, Stream& writer) = 0;
  virtual void release(CacheKey key, Stream& reader) = 0;  // the last use has been enqueued
  // The reader's later work finds all that was committed, as far as it is on the device or the
  // host.
  virtual void finish_step(Stream& reader) = 0;
  // Between steps: why the row in this place has lost its cache, so that its tokens are worth
  // nothing; "": it has not. Other rows are not touched by that.
  virtual std::string failure(int32_t group, int32_t place) const = 0;
  // Null: no row is attended on the host. Its views are for this lane, which also commits its rows.
  virtual HostLane* host_lane() { return nullptr; }
};

// What a job's cache takes beside what KvCache has on the device.
struct CacheNeed {
  size_t ring = 0;               // on the device: staging
  size_t host = 0, staging = 0;  // on the host: homes; buffers
  size_t disk = 0;               // of the file
};

// Where rows are at home, and what brings them from there.
class CacheHomes {
 public:
  virtual ~CacheHomes() = default;
  // KvShape::resident. Asked for a shape without it, as below.
  virtual std::vector<int32_t> resident(const KvShape& shape) const = 0;
  // KvShape::host_attends: the device whose operations attend rows that are not resident, in host
  // memory; null: they are attended by the one that computes all else.
  virtual Device* host() const { return nullptr; }
  virtual CacheNeed need(const KvShape& shape, const Ops& ops) const = 0;
  // Everything that need() says is taken here: throws out_of_memory, or io when the disk has not so
  // much. The cache outlives the feed.
  virtual std::unique_ptr<CacheFeed> open(Device& device, const KvShape& shape,
                                          const KvCache& cache) = 0;
};

// Tokens of a step that go through a stage together.
struct PieceTokens {
  int32_t token = 0, tokens = 0;  // of the step's
};

// Hidden states of a step's tokens, while they wait between two stages for the others' turn. For
// each step: begin_step; stage by stage, but for the head, for each piece in order: acquire,
// release. The host has waited for a step's last work before it begins the next.
class HiddenFeed {
 public:
  virtual ~HiddenFeed() = default;
  // The list holds until the step is over.
  virtual void begin_step(std::span<const PieceTokens> pieces) = 0;
  // [tokens, hidden], for the reader's later work until release: as the stage before has left them;
  // in stage 0, memory to be filled.
  virtual Tensor acquire(int stage, size_t piece, Stream& reader) = 0;
  virtual void release(int stage, size_t piece, Stream& reader) = 0;
};

// The most that a step has.
struct HiddenShape {
  int64_t tokens = 0, piece_tokens = 0;
  size_t pieces = 0;
  int32_t width = 0;
  int stages = 0;  // without the head
};

struct HiddenNeed {
  size_t device = 0, host = 0;
};

// Where hidden states are at home.
class HiddenHomes {
 public:
  virtual ~HiddenHomes() = default;
  virtual HiddenNeed need(const HiddenShape& shape) const = 0;
  virtual std::unique_ptr<HiddenFeed> open(Device& device, const HiddenShape& shape) = 0;
};

}  // namespace hydrant
