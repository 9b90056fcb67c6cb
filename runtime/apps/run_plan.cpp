#include "runtime/apps/run_plan.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "offload/offloaded_caches.hpp"
#include "offload/weight_prefetcher.hpp"
#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/spill_folder.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

MemoryNeed larger(const MemoryNeed& a, const MemoryNeed& b) {
  const auto most = [&](auto member) {
    return std::max(std::invoke(member, a), std::invoke(member, b));
  };
  const CacheNeed &x = a.cache, &y = b.cache;
  return {most(&MemoryNeed::kv),
          most(&MemoryNeed::workspace),
          most(&MemoryNeed::hidden),
          {std::max(x.ring, y.ring), std::max(x.host, y.host), std::max(x.staging, y.staging),
           std::max(x.disk, y.disk)},
          most(&MemoryNeed::host_workspace)};
}

// The generator is asked for sizes only.
class NoWeights final : public WeightFeed {
 public:
  void prefetch(int) override {}
  LayerWeights acquire(int, Stream&) override {
    fail(Fault::internal, "weights were asked for while planning");
  }
  void look_up(Matrix, EmbedArgs, Stream&) override {}
  void release(int, Stream&) override {}
};

WeightOffload options_of(const RunConfig& config) {
  WeightOffload options;
  options.shares = config.placement.weights;
  options.slots = config.prefetch.weight_slots;
  options.overlap = config.overlap;
  options.disk_lanes = config.prefetch.disk_lanes.value_or(options.disk_lanes);
  options.link = double(config.memory.link.value_or(0));
  return options;
}

CacheOffload cache_options_of(const RunConfig& config) {
  CacheOffload options;
  options.shares = config.placement.cache;
  options.slots = config.prefetch.cache_slots;
  options.overlap = config.overlap;
  if (config.cache_compute != "auto")
    options.compute = config.cache_compute == "host" ? CacheCompute::host : CacheCompute::device;
  options.link = double(config.memory.link.value_or(0));
  options.folder = folder_of(config);
  options.host_threads = config.threads;
  return options;
}

HiddenOffload hidden_options_of(const RunConfig& config) {
  return {.shares = config.placement.activations,
          .slots = config.prefetch.cache_slots,
          .overlap = config.overlap,
          .link = double(config.memory.link.value_or(0))};
}

OffloadMemory memory_of(const Model& model, const WeightPlan& weights, Device& device,
                        const WeightOffload& options) {
  return options.shares.device == 100 ? OffloadMemory{.device_homes = weights.bytes}
                                      : WeightPrefetcher::memory(model.files.checkpoint, model.spec,
                                                                 weights, device.ops(), options);
}

// What device and host may take, whoever limits it.
size_t room(const std::optional<uint64_t>& cap, size_t available) {
  return cap ? std::min<size_t>(*cap, available) : available;
}

size_t minus(size_t a, size_t b) { return a - std::min(a, b); }

// Of memory that is the device's. On a card neither the process nor what reads need takes any of
// it.
size_t left_for_plan(const Device& device) {
  return minus(device.available(Memory::device), device.is_host() ? kProcessRoom : 0);
}

// What rows take with the cache there.
MemoryNeed rows_of(RunConfig config, const RunNeed& need, const Shares& cache) {
  config.placement.cache = cache;
  return need.of(config);
}

WeightOffload in_files(WeightOffload options) {
  options.shares = {0, 0, 100};
  return options;
}

WeightOffload smallest(WeightOffload options) {
  options = in_files(options);
  options.disk_lanes = 1;
  options.slots = 2;
  options.arriving = 0;
  return options;
}

Tier tier(const char* key, std::optional<uint64_t> cap, std::vector<MemoryItem> items) {
  std::erase_if(items, [](const MemoryItem& item) { return item.bytes == 0; });
  return {key, cap, std::move(items)};
}

// Of device and host.
void set_tiers(RunPlan& plan, const OffloadMemory& weights, const MemoryNeed& rows,
               const MemoryConfig& memory) {
  plan.device = tier("memory.device", memory.device,
                     {{"weights", weights.device_homes},
                      {"room for weights that pass through", weights.ring},
                      {kCacheItem, rows.kv},
                      {"room for caches that pass through", rows.cache.ring},
                      {"working memory", rows.workspace}});
  plan.host = tier("memory.host", memory.host,
                   {{"weights", weights.host_homes},
                    {fmt::format("buffers for reading weights (disk_lanes {})", plan.disk_lanes()),
                     weights.staging},
                    {kCacheItem, rows.cache.host},
                    {"buffers of caches on disk", rows.cache.staging},
                    {"working memory of attention", rows.host_workspace},
                    {"hidden states", rows.hidden}});
}

Tier disk_tier(const RunPlan& plan, const Model& model, const MemoryNeed& rows,
               const MemoryConfig& memory) {
  const Checkpoint& checkpoint = model.files.checkpoint;  // made-up weights are written first
  const size_t written =
      checkpoint.is_made() && plan.offload.shares.disk > 0 ? checkpoint.made_bytes() : 0;
  return tier("memory.disk", memory.disk,
              {{kCacheItem, rows.cache.disk}, {"synthetic weights", written}});
}

// Bytes of host memory that are more than there may be; what a process takes beside its plan has to
// have room as well.
size_t excess(const RunPlan& plan, Device& device) {
  const size_t host = plan.host.bytes(),
               free = minus(device.available(Memory::pinned), kProcessRoom),
               beside = device.is_host() ? plan.device.bytes() : 0;
  return std::max(minus(host + beside, free), minus(host, plan.host.cap.value_or(host)));
}

// The largest whole percentage that fits beside the rows; the rest stays in the files: from there
// it comes at the disk's pace, and host memory that could hold it is, here, device memory.
Shares find_shares(const RunConfig& config, const Model& model, Device& device,
                   const WeightPlan& weights, const WeightOffload& options,
                   const MemoryNeed& rows) {
  const bool host = device.is_host();
  const size_t available = left_for_plan(device), need = rows.kv + rows.cache.ring + rows.workspace;
  WeightOffload tried = in_files(options);
  tried.arriving = std::min(tried.arriving, available / kReadingPart);
  const size_t staging = memory_of(model, weights, device, tried).on_host() + rows.cache.host +
                         rows.cache.staging,
               left = minus(room(config.memory.device, minus(available, host ? staging : 0)), need);
  for (int percent = 99; percent > 0; percent--) {
    tried.shares = {double(percent), 0, double(100 - percent)};
    if (WeightPrefetcher::unstaged_memory(weights, model.spec, tried).on_device() <= left)
      return tried.shares;
  }
  return in_files(options).shares;
}

// Of rows, beside weights that take the least: all on the device, or as few as need be elsewhere,
// in whole percent. Where none is enough, all are on disk if that takes less of the device: what is
// refused then is the least.
Shares find_cache(const RunPlan& plan, const RunConfig& config, const Model& model, Device& device,
                  const RunNeed& need) {
  RunPlan tried = plan;
  tried.offload = in_files(plan.offload);
  tried.offload.disk_lanes = config.prefetch.disk_lanes.value_or(1);
  tried.offload.arriving = 0;
  const OffloadMemory weights = memory_of(model, plan.weights, device, tried.offload);
  std::error_code absent;
  const auto space = std::filesystem::space(plan.caches.folder, absent);
  const size_t limit = room(config.memory.device, left_for_plan(device)),
               disk = room(config.memory.disk, absent ? 0 : space.available);
  const auto fits_device = [&](const Shares& cache) {
    const MemoryNeed rows = rows_of(config, need, cache);
    set_tiers(tried, weights, rows, config.memory);
    tried.disk = disk_tier(tried, model, rows, config.memory);
    return tried.device.bytes() <= limit;
  };
  const auto fits = [&](const Shares& cache) {
    return fits_device(cache) && excess(tried, device) == 0 && tried.disk.bytes() <= disk;
  };
  if (fits({})) return {};
  const bool over = tried.device.bytes() > limit;
  const size_t resident = tried.device.bytes();
  for (int there = 99; there >= 0; there--) {
    const double on_device = there, elsewhere = 100 - there;
    if (!device.is_host() && !fits_device({on_device, elsewhere, 0})) continue;
    for (double on_disk = device.is_host() ? elsewhere : 0; on_disk <= elsewhere; on_disk++)
      if (const Shares cache{on_device, elsewhere - on_disk, on_disk}; fits(cache)) return cache;
  }
  constexpr Shares kOnDisk{0, 0, 100};
  fits_device(kOnDisk);
  return over && tried.device.bytes() < resident && tried.disk.bytes() <= disk ? kOnDisk : Shares{};
}

// And the staging, which is smaller where it would not fit: what reads arrive in, then their lanes
// if their number is free.
void set_staging(RunPlan& plan, const RunConfig& config, const Model& model, Device& device,
                 const MemoryNeed& rows) {
  const auto lay_out = [&] {
    const OffloadMemory weights = memory_of(model, plan.weights, device, plan.offload);
    set_tiers(plan, weights, rows, config.memory);
    return weights.arriving;
  };
  const size_t wanted = plan.offload.arriving;
  for (;; plan.offload.disk_lanes /= 2) {
    plan.offload.arriving = wanted;
    const size_t arriving = lay_out(), over = excess(plan, device);
    if (arriving == 0 || over == 0) return;
    plan.offload.arriving = minus(arriving, over);
    lay_out();
    if (config.prefetch.disk_lanes || plan.offload.disk_lanes == 1 || excess(plan, device) == 0)
      return;
  }
}

}  // namespace

size_t resident_memory() {
  std::ifstream pages("/proc/self/statm");
  size_t all = 0, resident = 0;
  pages >> all >> resident;
  return resident * size_t(::sysconf(_SC_PAGESIZE));
}

RunNeed run_need(const RunConfig& config, const Model& model, Device& device,
                 const BatchShape& shape, std::span<const Request> rows) {
  const auto of = [&model, &device, shape, rows](const RunConfig& c) {
    NoWeights none;
    const CacheOffload options = cache_options_of(c);
    const std::unique_ptr<Device> host = open_host(device, options);
    OffloadedCaches caches(device, options, nullptr, host.get());
    OffloadedHidden hidden(hidden_options_of(c));
    const bool move = options.shares.device != 100,
               hidden_moves = c.placement.activations.device != 100;
    return Generator(device, model.spec, none, shape, cache_dtype(c, device),
                     move ? &caches : nullptr, hidden_moves ? &hidden : nullptr)
        .need(rows);
  };
  RunConfig there = config;
  there.placement = {};
  there.cache_compute = "auto";
  const MemoryNeed resident = of(there);
  return {of(config), resident.kv + resident.workspace, of};
}

RunNeed larger(const RunNeed& a, const RunNeed& b) {
  return {larger(a.placed, b.placed), std::max(a.resident, b.resident),
          [of_a = a.of, of_b = b.of](const RunConfig& c) { return larger(of_a(c), of_b(c)); }};
}

RunPlan plan_run(const RunConfig& config, const Model& model, Device& device, const RunNeed& need) {
  return plan_run(config, model, device, need, plan_weights(model, device, config));
}

RunPlan plan_run(const RunConfig& config, const Model& model, Device& device, const RunNeed& need,
                 const WeightPlan& planned) {
  RunPlan plan;
  plan.rows = need.placed;
  plan.weights = planned;
  plan.offload = options_of(config);
  plan.caches = cache_options_of(config);
  plan.hidden = hidden_options_of(config);
  plan.resident = plan.weights.bytes + need.resident;
  plan.process = resident_memory();
  if (config.placement.automatic &&
      plan.resident > room(config.memory.device, left_for_plan(device))) {
    plan.caches.shares = find_cache(plan, config, model, device, need);
    if (plan.caches_move()) plan.rows = rows_of(config, need, plan.caches.shares);
    plan.offload.shares = find_shares(config, model, device, plan.weights, plan.offload, plan.rows);
  }

  set_staging(plan, config, model, device, plan.rows);
  // A share that cuts matrices may need larger buffers than none at all.
  if (config.placement.automatic && plan.weights_move() && excess(plan, device) > 0) {
    plan.offload = in_files(options_of(config));
    set_staging(plan, config, model, device, plan.rows);
  }
  plan.disk = disk_tier(plan, model, plan.rows, config.memory);
  return plan;
}

Least least_of(const RunPlan& plan, const RunConfig& config, const Model& model, Device& device,
               const RunNeed& need) {
  RunConfig there = placed(config, plan);
  there.prefetch.cache_slots = 2;
  RunPlan least = plan;
  least.offload = smallest(plan.offload);
  least.offload.overlap = config.overlap;
  set_tiers(least, memory_of(model, plan.weights, device, least.offload), need.of(there),
            config.memory);
  return {least.device.bytes(), least.host.bytes()};
}

RunConfig placed(RunConfig config, const RunPlan& plan) {
  config.placement.automatic = false;
  config.placement.weights = plan.offload.shares;
  config.placement.cache = plan.caches.shares;
  if (plan.disk_lanes() > 0) config.prefetch.disk_lanes = plan.disk_lanes();
  return config;
}

}  // namespace hydrant
