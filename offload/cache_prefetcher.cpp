#include "offload/cache_prefetcher.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/copied_memory.hpp"
#include "runtime/device/traced.hpp"

namespace hydrant {
namespace {

constexpr size_t kBlock = File::kBlock;

int slots_of(const CacheOffload& o) { return o.overlap ? o.slots : 1; }

// Where the allocations are cut; sizes alone where an arena measures.
struct Carved {
  std::byte *ring, *homes, *images, *tails;
};
Carved carve(const CacheLayout& layout, int slots, Arena& device, Arena& host) {
  const auto take = [](Arena& arena, size_t bytes) {
    return static_cast<std::byte*>(arena.take_bytes(bytes));
  };
  Carved c{};
  c.ring = take(device, layout.slot_bytes() * size_t(slots));
  c.homes = take(host, layout.host_bytes());
  const size_t images = layout.image_bytes() * size_t(slots);
  if (images == 0) return c;
  std::byte* const blocks = take(host, images + DiskCaches::tail_bytes(layout) + kBlock);
  if (!blocks) return c;
  const auto address = reinterpret_cast<uintptr_t>(blocks);
  c.images = blocks + (align_up(address, uintptr_t{kBlock}) - address);
  c.tails = c.images + images;
  return c;
}

// Of each head of a row, the runs that hold something of its first `tokens`.
template <class Use>
void each_filled(const CacheView& from, const CacheView& to, int32_t place, int32_t tokens,
                 const Use& use) {
  const KvRuns source = from.row(place), target = to.row(place);
  const size_t filled = size_t(filled_runs(from.plans[place].slots, tokens)) * source.run_bytes;
  const bool whole = filled == source.head_bytes;
  const size_t pieces = whole ? 1 : size_t(from.kv_heads);
  for (size_t i = 0; i < pieces; i++)
    use(target.data + i * target.head_bytes, source.data + i * source.head_bytes,
        whole ? filled * size_t(from.kv_heads) : filled);
}

}  // namespace

CacheNeed CachePrefetcher::memory(const CacheLayout& layout, const CacheOffload& options) {
  Arena device, host;
  carve(layout, slots_of(options), device, host);
  return {.ring = device.used(),
          .host = layout.host_bytes(),
          .staging = host.used() - layout.host_bytes(),
          .disk = layout.file_bytes()};
}

CachePrefetcher::CachePrefetcher(Device& device, Device* host, const CacheLayout& layout,
                                 const KvCache& cache, const CacheOffload& options,
                                 std::unique_ptr<DiskFile> file, Link& up, Link& down,
                                 CacheTraffic& traffic)
    : ops_(device.ops()),
      ops_elsewhere_(host ? host->ops() : device.ops()),
      layout_(layout),
      cache_(cache),
      up_(up),
      down_(down),
      traffic_(traffic),
      slots_(slots_of(options)),
      ahead_(options.overlap),
      attended_(device.make_event()),
      stored_(device.make_event()) {
  const CacheNeed need = memory(layout_, options);
  on_device_ = device.allocate(Memory::device, need.ring, "the ring of the KV cache");
  on_host_ = allocate_for_copies(device, need.host + need.staging, "the KV cache on the host",
                                 host ? "only the processor works in it"
                                      : "rows go back to it whole, and copies wait for the host");
  in_place_ = host || device.is_host() || on_host_.memory() == Memory::pinned;
  Arena on_device(on_device_), on_host(on_host_);
  const Carved at = carve(layout_, slots_, on_device, on_host);
  host_homes_ = at.homes;
  moving_.reserve(size_t(layout_.shape().groups));
  if (file)
    disk_.emplace(std::move(file), options.folder, host ? *host : device, layout_, slots_, ahead_,
                  at.images, at.tails, traffic);
  if (host) host_.emplace(device, *host, up, down, traffic);
  if (need.ring == 0) return;
  ring_.emplace(device, at.ring, slots_, layout_.slot_bytes());
  if (!ahead_) return;
  load_ = device.make_stream("load_cache", /*inline_work=*/false);
  store_ = device.make_stream("store_cache", /*inline_work=*/false);
}

CachePrefetcher::Home CachePrefetcher::home_of(int32_t group, int32_t place) const {
  const RowHomes& h = layout_.homes(group);
  return place < h.device ? Home::device : place < h.first_on_disk() ? Home::host : Home::disk;
}

bool CachePrefetcher::moves(int32_t group) const {
  const RowHomes& h = layout_.homes(group);
  return h.disk > 0 || (ring_ && h.host > 0);
}

void CachePrefetcher::admit(int32_t group, int32_t place) {
  if (home_of(group, place) == Home::disk) disk_->admit(group, place);
}

std::string CachePrefetcher::failure(int32_t group, int32_t place) const {
  return home_of(group, place) == Home::disk ? disk_->failure(group, place) : std::string();
}

void CachePrefetcher::begin_step(std::span<const ActiveGroup> groups) {
  first_use_ += filled_;
  filled_ = released_ = 0;
  moving_.clear();
  std::copy_if(groups.begin(), groups.end(), std::back_inserter(moving_),
               [&](const ActiveGroup& g) { return moves(g.group); });
  prefetch({});
}

void CachePrefetcher::prefetch(CacheKey) {
  if (!ahead_) return;
  const auto all = int64_t(moving_.size() * layout_.shape().capacity.size());
  while (filled_ < all && filled_ - released_ < slots_) fill(load_.get());
}

// Of the (layer, group) that comes after those that are filled.
void CachePrefetcher::fill(Stream* lane) {
  const auto layer = int32_t(size_t(filled_) / moving_.size());
  const ActiveGroup& group = moving_[size_t(filled_) % moving_.size()];
  const CacheKey key{layer, group.group};
  const RowHomes& h = layout_.homes(group.group);
  const int64_t disk_use = h.disk > 0 ? disk_->fetch(layer, group, lane) : -1;
  if (ring_) {
    const int64_t ring_use = first_use_ + filled_;
    ring_->begin_fill(ring_use, *lane);
    if (h.host > 0)
      copy_up(host_home(key), on_ring(key, Home::host, ring_use), group.decode, *lane);
    if (h.disk > 0) {
      disk_->begin_read(disk_use, *lane);
      copy_up(image(key, disk_use), on_ring(key, Home::disk, ring_use), group.decode, *lane);
    }
    ring_->end_fill(ring_use, *lane);
  }
  filled_++;
}

void CachePrefetcher::copy_up(const CacheView& from, const CacheView& to,
                              std::span<const Segment> decode, Stream& lane) {
  const auto each = [&](const auto& use) {
    for (const Segment& s : decode)
      if (from.has(s.place)) each_filled(from, to, s.place, s.first, use);
  };
  size_t all = 0;
  each([&](std::byte*, const std::byte*, size_t bytes) { all += bytes; });
  if (all == 0) return;
  const Traced traced(lane, all, "rows of the cache");
  up_.paced(lane, all, [&] {
    each([&](std::byte* target, const std::byte* source, size_t bytes) {
      lane.copy(target, source, bytes);
      traffic_.to_device += bytes;
    });
  });
}

void CachePrefetcher::copy_down(const CacheView& from, const CacheView& to, int32_t place,
                                int32_t tokens, Stream& lane) {
  each_filled(from, to, place, tokens,
              [&](std::byte* target, const std::byte* source, size_t bytes) {
                down_.copy(lane, target, source, bytes);
                traffic_.to_host += bytes;
              });
}

CacheView CachePrefetcher::scores(CacheKey key) const {
  return host_ ? cache_.host_side(key.layer, key.group) : cache_.home(key.layer, key.group);
}

CacheView CachePrefetcher::host_home(CacheKey key) const {
  return layout_.host_view(scores(key), key.layer, key.group,
                           host_homes_ + layout_.host_at(key.layer, key.group));
}

CacheView CachePrefetcher::image(CacheKey key, int64_t disk_use) const {
  return layout_.disk_view(scores(key), key.layer, key.group, disk_->image(disk_use),
                           layout_.block_bytes(key.layer));
}

// A slot: rows of the host home, then those of the file.
CacheView CachePrefetcher::on_ring(CacheKey key, Home home, int64_t ring_use) const {
  const size_t place = layout_.place_bytes(key.layer);
  std::byte* const slot = ring_->data(ring_use);
  if (home == Home::host) return layout_.host_view(scores(key), key.layer, key.group, slot);
  return layout_.disk_view(scores(key), key.layer, key.group,
                           slot + size_t(layout_.homes(key.group).host) * place, place);
}

CacheViews CachePrefetcher::acquire(CacheKey key, Stream& reader) {
  if (prompts_leave_) reader.wait(*stored_);
  prompts_leave_ = false;
  const RowHomes& h = layout_.homes(key.group);
  if (moves(key.group)) {
    const size_t next = size_t(released_) / moving_.size();
    ensure(
        size_t(key.layer) == next && key.group == moving_[size_t(released_) % moving_.size()].group,
        "layer {} of group {} comes out of turn", key.layer, key.group);
    if (filled_ == released_) fill(load_ ? load_.get() : &attending(reader));
    if (ring_)
      ring_->begin_read(use(), reader);
    else
      disk_->begin_read(disk_->front(), attending(reader));
  }
  CacheViews views;
  views.add(cache_.home(key.layer, key.group));
  const Side side = host_ ? Side::host : Side::device;
  if (h.host > 0) views.add(ring_ ? on_ring(key, Home::host, use()) : host_home(key), side);
  if (h.disk > 0)
    views.add(ring_ ? on_ring(key, Home::disk, use()) : image(key, disk_->front()), side);
  return views;
}

CacheView CachePrefetcher::destination(CacheKey key, Home home) const {
  return home == Home::device ? cache_.home(key.layer, key.group)
         : home == Home::host ? host_home(key)
                              : image(key, disk_->front());
}

Stream& CachePrefetcher::storing(Stream& writer) {
  if (!store_) return writer;
  writer.record(*attended_);
  store_->wait(*attended_);
  return *store_;
}

void CachePrefetcher::commit(CacheKey key, StoreDecodeArgs args, Stream& writer) {
  const Home home = home_of(key.group, args.segments.front().place);
  args.to = destination(key, home);
  const bool copied = is_copied(home);
  Stream& lane = copied ? storing(writer) : writer;
  // In place, a token that displaces nobody has landed in its slot already.
  size_t bytes = 0;
  bool evicts = false;
  for (const Segment& s : args.segments) {
    const policy::SlotLayout& slots = args.to.plans[s.place].slots;
    bytes += layout_.decode_moves(key.layer, key.group, s.place, s.first, slots).to_host;
    evicts |= slots.evicts_at(s.first);
  }
  if (copied && !in_place_) {
    const CacheView there = std::exchange(args.to, on_ring(key, home, use()));
    if (evicts) ops_.store_decode(lane, args);
    for (const Segment& s : args.segments) copy_down(args.to, there, s.place, s.first + 1, lane);
    args.to = there;
  } else if (copied) {
    const Traced traced(lane, bytes, "layer {} group {}", key.layer, key.group);
    down_.paced(lane, bytes, [&] { ops_.store_decode(lane, args); });
    traffic_.to_host += bytes;
  } else if (evicts) {
    ops_of(home).store_decode(lane, args);
  }
  if (home == Home::disk) disk_->stored(args.segments, args.to, lane);
}

void CachePrefetcher::commit(CacheKey key, StorePromptArgs args, Stream& writer) {
  const int32_t place = args.prompt.segment.place;
  const Home home = home_of(key.group, place);
  args.to = destination(key, home);
  if (is_copied(home)) {
    const size_t bytes = layout_
                             .prompt_moves(key.layer, key.group, place, args.prompt.length,
                                           args.to.plans[place].slots)
                             .to_host;
    Stream& lane = storing(writer);
    if (in_place_) {
      down_.paced(lane, bytes, [&] { ops_.store_prompt(lane, args); });
      traffic_.to_host += bytes;
    } else {
      const CacheView there = std::exchange(args.to, on_ring(key, home, use()));
      ops_.store_prompt(lane, args);
      copy_down(args.to, there, place, args.prompt.length, lane);
      args.to = there;
    }
    prompts_leave_ = store_ != nullptr;
  } else {
    ops_of(home).store_prompt(writer, args);
  }
  if (home == Home::disk) disk_->stored(args.prompt, args.to);
}

void CachePrefetcher::release(CacheKey key, Stream& reader) {
  if (!moves(key.group)) return;
  Stream& last = storing(attending(reader));
  if (ring_) ring_->end_read(use(), last);
  if (layout_.homes(key.group).disk > 0) disk_->release(last);
  if (store_) store_->record(*stored_);
  released_++;
}

void CachePrefetcher::finish_step(Stream& reader) {
  if (store_) reader.wait(*stored_);
  if (host_) host_->finish_step(reader);
}

}  // namespace hydrant
