// A cache that is larger than the device: the feed that brings its rows as they are needed.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "offload/cache_layout.hpp"
#include "offload/disk_caches.hpp"
#include "offload/host_attention.hpp"
#include "offload/link.hpp"
#include "offload/staging_ring.hpp"

namespace hydrant {

// Rows that are attended in host memory are not copied: those at home there are computed on in
// place, those of the file in the ring of images that they are read into. Rows that are staged pass
// through a ring on the device; what a step changes of them, two tokens a head, the operation
// itself writes home, or into the image. Who attends in host memory may be another device: then the
// host's lane takes the reader's part.
//
// Order between lanes: `ready` and `free` of a slot; `attended`, before the store lane reads what
// was computed; `stored`, before that may be written again. Within a step no home is read after it
// was written, and steps are apart.
class CachePrefetcher final : public CacheFeed {
 public:
  // Options that have been checked. host: null when the device attends all rows. file: null when no
  // row is on disk. The others outlive this.
  CachePrefetcher(Device& device, Device* host, const CacheLayout& layout, const KvCache& cache,
                  const CacheOffload& options, std::unique_ptr<DiskFile> file, Link& up, Link& down,
                  CacheTraffic& traffic);

  // By the same layout.
  static CacheNeed memory(const CacheLayout& layout, const CacheOffload& options);

  void admit(int32_t group, int32_t place) override;
  void begin_step(std::span<const ActiveGroup> groups) override;
  void prefetch(CacheKey key) override;
  CacheViews acquire(CacheKey key, Stream& reader) override;
  void commit(CacheKey key, StoreDecodeArgs args, Stream& writer) override;
  void commit(CacheKey key, StorePromptArgs args, Stream& writer) override;
  void release(CacheKey key, Stream& reader) override;
  void finish_step(Stream& reader) override;
  std::string failure(int32_t group, int32_t place) const override;
  HostLane* host_lane() override { return host_ ? &*host_ : nullptr; }
  // Kernels write home: it is pinned, or theirs. Else staged rows are written whole.
  bool writes_in_place() const { return in_place_; }

 private:
  enum class Home : uint8_t { device, host, disk };
  Home home_of(int32_t group, int32_t place) const;
  bool moves(int32_t group) const;
  Ops& ops_of(Home home) const { return home == Home::device ? ops_ : ops_elsewhere_; }
  bool is_copied(Home home) const { return home != Home::device && ring_; }
  int64_t use() const { return first_use_ + released_; }

  void fill(Stream* lane);
  void copy_up(const CacheView& from, const CacheView& to, std::span<const Segment> decode,
               Stream& lane);
  // Where kernels cannot write home: a row's runs, as they have left them in the ring.
  void copy_down(const CacheView& from, const CacheView& to, int32_t place, int32_t tokens,
                 Stream& lane);
  // The part of a view that has the scores of rows that are not at home on the device.
  CacheView scores(CacheKey key) const;
  CacheView host_home(CacheKey key) const;
  CacheView image(CacheKey key, int64_t disk_use) const;
  CacheView on_ring(CacheKey key, Home home, int64_t ring_use) const;
  CacheView destination(CacheKey key, Home home) const;
  // The lane that attends rows in host memory.
  Stream& attending(Stream& reader) { return host_ ? host_->stream() : reader; }
  // The lane that brings home what the writer has computed.
  Stream& storing(Stream& writer);

  Ops &ops_, &ops_elsewhere_;  // of whoever attends rows at home on the device, and elsewhere
  const CacheLayout layout_;
  const KvCache& cache_;
  Link &up_, &down_;
  CacheTraffic& traffic_;
  Buffer on_device_, on_host_;
  bool in_place_ = true;
  std::byte* host_homes_ = nullptr;
  int slots_;
  bool ahead_;
  std::optional<StagingRing> ring_;  // none: nothing is staged

  // All layers of these groups move in this step, in order.
  std::vector<ActiveGroup> moving_;
  int64_t filled_ = 0, released_ = 0;  // of those (layer, group)s
  int64_t first_use_ = 0;              // the first one's use of the ring
  bool prompts_leave_ = false;         // since the reader has waited for `stored`

  std::unique_ptr<Event> attended_, stored_;
  std::optional<DiskCaches> disk_;
  std::optional<HostAttention> host_;
  // Null without overlap, or where nothing is staged. Last: their work ends before what it uses.
  std::unique_ptr<Stream> load_, store_;
};

}  // namespace hydrant
