#include "offload/offloaded_caches.hpp"

#include <utility>

#include "offload/cache_prefetcher.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

constexpr int kMostSlots = 64, kMostRequests = 64;

CacheOffload checked(const Device& device, const CacheOffload& o, const Device* host) {
  check_shares(o.shares, "placement.cache");
  if (o.slots < 2 || o.slots > kMostSlots)
    fail(Fault::bad_config, "prefetch.cache_slots: {}, must be 2 to {}", o.slots, kMostSlots);
  if (o.disk_requests < 1 || o.disk_requests > kMostRequests)
    fail(Fault::bad_config, "prefetch.disk_requests: {}, must be 1 to {}", o.disk_requests,
         kMostRequests);
  check_link(o.link);
  ensure(!OffloadedCaches::wants_host(device, o) || (host && host->is_host()),
         "{} does not compute in host memory, and nothing else is there to", device.name());
  return o;
}

bool is_staged(const Device& device, CacheCompute compute) {
  return compute == CacheCompute::device ||
         (compute == CacheCompute::automatic && !device.is_host());
}

}  // namespace

bool OffloadedCaches::wants_host(const Device& device, const CacheOffload& options) {
  return options.compute == CacheCompute::host && !device.is_host();
}

OffloadedCaches::OffloadedCaches(const Device& device, const CacheOffload& options, Link* up,
                                 Device* host, OpenFile open_file)
    : options_(checked(device, options, host)),
      host_(wants_host(device, options) ? host : nullptr),
      staged_(is_staged(device, options.compute)),
      open_file_(std::move(open_file)),
      own_up_(options.link),
      down_(options.link),
      up_(up ? *up : own_up_) {}

std::unique_ptr<DiskFile> OffloadedCaches::open_spill_file(const CacheOffload& options,
                                                           uint64_t bytes) {
  SpillFile file(options.folder, bytes, options.caching);
  if (options.caching == Caching::direct && !file.is_direct())
    log::warning(
        "memory.folder: {}: its file system has no direct requests; the cache passes through the "
        "page cache",
        options.folder);
  return open_disk_file(std::move(file), options.disk_engine, options.disk_requests);
}

CacheLayout OffloadedCaches::layout(const KvShape& shape, const Ops& ops) const {
  KvShape all = shape;
  all.host_attends = host_ != nullptr;
  return {all, options_.shares, staged_, host_ ? host_->ops() : ops, written_whole_};
}

std::vector<int32_t> OffloadedCaches::resident(const KvShape& shape) const {
  std::vector<int32_t> rows;
  for (const RowHomes& h : place_rows(options_.shares, shape.groups, shape.rows_per_group))
    rows.push_back(h.device);
  return rows;
}

CacheNeed OffloadedCaches::need(const KvShape& shape, const Ops& ops) const {
  return CachePrefetcher::memory(layout(shape, ops), options_);
}

std::unique_ptr<CacheFeed> OffloadedCaches::open(Device& device, const KvShape& shape,
                                                 const KvCache& cache) {
  written_whole_ = false;
  const CacheLayout where = layout(shape, device.ops());
  std::unique_ptr<DiskFile> file;
  if (where.file_bytes() > 0) file = open_file_(options_, where.file_bytes());
  auto feed = std::make_unique<CachePrefetcher>(device, host_, where, cache, options_,
                                                std::move(file), up_, down_, traffic_);
  written_whole_ = !feed->writes_in_place();
  return feed;
}

}  // namespace hydrant
