#include "runtime/apps/run_plan.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "offload/offloaded_caches.hpp"
#include "offload/weight_prefetcher.hpp"
#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/idle_keys.hpp"
#include "runtime/apps/spill_folder.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

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

constexpr const char* kCache = "KV cache";

size_t minus(size_t a, size_t b) { return a - std::min(a, b); }

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

// The largest whole percentage that fits beside `need`; the rest stays in the files: from there it
// comes at the disk's pace, and host memory that could hold it is, here, device memory.
Shares find_shares(const RunConfig& config, const Model& model, Device& device,
                   const WeightPlan& weights, const WeightOffload& options, size_t need) {
  // On a card neither the process nor what reads need takes any of it.
  const bool host = device.is_host();
  const size_t available = minus(device.available(Memory::device), host ? kProcessRoom : 0);
  if (weights.bytes + need <= room(config.memory.device, available)) return {};
  WeightOffload tried = in_files(options);
  tried.arriving = std::min(tried.arriving, available / kReadingPart);
  const size_t staging = memory_of(model, weights, device, tried).on_host(),
               left = minus(room(config.memory.device, minus(available, host ? staging : 0)), need);
  for (int percent = 99; percent > 0; percent--) {
    tried.shares = {double(percent), 0, double(100 - percent)};
    if (WeightPrefetcher::unstaged_memory(weights, model.spec, tried).on_device() <= left)
      return tried.shares;
  }
  return in_files(options).shares;
}

// One line for what was chosen, or for a choice that only costs time.
void say_what_was_placed(const RunPlan& plan, const RunConfig& config, const Sources& sources,
                         const Device& device) {
  if (plan.all_on_device()) return;
  const Shares& shares = plan.offload.shares;
  std::string key = sources.name("placement");
  for (const char* path : {"placement.weights", "placement.cache", "placement.activations"})
    if (sources.given(path)) key = sources.name(path);
  if (config.placement.automatic) {
    log::info(
        "{} auto: {} % of the weights are on the device, the others are read from the model's "
        "files in each step",
        key, shares.device);
    return;
  }
  const size_t available = device.available(Memory::device),
               limit = room(config.memory.device, available);
  if (plan.resident <= limit)
    log::warning("{}: all would fit on the device ({} of {}): what is elsewhere only costs time",
                 key, bytes_text(plan.resident), bytes_text(limit));
  else if (shares.host > 0 && device.is_host())
    log::info(
        "{}: host memory is the {} device's own: weights are copied from memory to memory, as "
        "tests and comparisons want it",
        key, device.name());
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
                      {kCache, rows.kv},
                      {"room for caches that pass through", rows.cache.ring},
                      {"working memory", rows.workspace}});
  plan.host = tier("memory.host", memory.host,
                   {{"weights", weights.host_homes},
                    {fmt::format("buffers for reading weights (disk_lanes {})", plan.disk_lanes()),
                     weights.staging},
                    {kCache, rows.cache.host},
                    {"buffers of caches on disk", rows.cache.staging},
                    {"working memory of attention", rows.host_workspace},
                    {"hidden states", rows.hidden}});
}

// Bytes of host memory that are more than there may be; what a process takes beside its plan has to
// have room as well.
size_t excess(const RunPlan& plan, Device& device) {
  const size_t host = plan.host.bytes(),
               free = minus(device.available(Memory::pinned), kProcessRoom),
               beside = device.is_host() ? plan.device.bytes() : 0;
  return std::max(minus(host + beside, free), minus(host, plan.host.cap.value_or(host)));
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

// `least`: what would do with all weights left in the model's files, one lane and two slots.
std::string least_text(const Tier& tier, size_t least) {
  if (least < tier.bytes())
    return fmt::format(
        "; with all weights left in the files (prefetch.disk_lanes 1, weight_slots 2) {} would do",
        bytes_text(least));
  const bool cached = std::any_of(tier.items.begin(), tier.items.end(),
                                  [](const MemoryItem& item) { return item.what == kCache; });
  return cached ? "; less will not do with the cache where it is (placement.cache)"
                : "; less will not do";
}

std::string over_cap(const Tier& tier, const Sources& sources, size_t least) {
  if (!tier.cap || tier.bytes() <= *tier.cap) return "";
  return fmt::format("{}: {} are not enough: this run needs {}{}", sources.name(tier.key),
                     bytes_text(*tier.cap), tier.text(), least_text(tier, least));
}

std::string over_space(const RunPlan& plan, const Sources& sources) {
  if (plan.disk.bytes() == 0) return "";
  std::error_code error;
  const auto space = std::filesystem::space(plan.caches.folder, error);
  if (error)
    return fmt::format("{}: {}: {}", sources.name("memory.folder"), plan.caches.folder,
                       error.message());
  if (plan.disk.bytes() <= space.available) return "";
  return fmt::format("{}: {} has {} free, this run needs {}", sources.name("memory.folder"),
                     plan.caches.folder, bytes_text(space.available), plan.disk.text());
}

// What `ulimit -v` leaves; nothing when there is no such limit.
std::optional<size_t> left_to_map() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  size_t mapped = 0;
  std::ifstream("/proc/self/statm") >> mapped;
  return minus(limit.rlim_cur, mapped * size_t(::sysconf(_SC_PAGESIZE)));
}

// Which limit it is that leaves no more to the system's part of a run.
std::string system_text(size_t available) {
  constexpr size_t kBetweenLooks = size_t{1} << 20;
  const std::optional<size_t> left = left_to_map();
  return left && *left <= available + kBetweenLooks
             ? fmt::format("this process may map {} more (ulimit -v)", bytes_text(available))
             : fmt::format("the system has {} of memory free", bytes_text(available));
}

std::string over_system(const Tier& tier, size_t available, size_t least) {
  if (tier.bytes() <= available) return "";
  return fmt::format("{}: this run needs {}{}", system_text(available), tier.text(),
                     least_text(tier, least));
}

// Of the tiers, with weights that take as little as they can.
struct Least {
  size_t device = 0, host = 0;
};
Least least_of(const RunPlan& plan, const Model& model, Device& device) {
  const OffloadMemory now = memory_of(model, plan.weights, device, plan.offload),
                      least = memory_of(model, plan.weights, device, smallest(plan.offload));
  return {plan.device.bytes() - now.on_device() + least.on_device(),
          plan.host.bytes() - now.on_host() + least.on_host()};
}

std::string over_caps(const RunPlan& plan, const Sources& sources, const Least& least) {
  std::string why = over_cap(plan.device, sources, least.device);
  if (why.empty()) why = over_cap(plan.host, sources, least.host);
  if (why.empty()) why = over_cap(plan.disk, sources, plan.disk.bytes());
  return why;
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
  NoWeights none;
  const DType kv_dtype = cache_dtype(config, device);
  const CacheOffload options = cache_options_of(config);
  const std::unique_ptr<Device> host = open_host(device, options);
  OffloadedCaches caches(device, options, nullptr, host.get());
  OffloadedHidden hidden(hidden_options_of(config));
  const bool move = config.placement.cache.device != 100,
             hidden_moves = config.placement.activations.device != 100;
  const MemoryNeed placed = Generator(device, model.spec, none, shape, kv_dtype,
                                      move ? &caches : nullptr, hidden_moves ? &hidden : nullptr)
                                .need(rows),
                   resident = Generator(device, model.spec, none, shape, kv_dtype).need(rows);
  return {placed, resident.kv + resident.workspace};
}

RunNeed larger(const RunNeed& a, const RunNeed& b) {
  const auto most = [&](auto member) {
    return std::max(std::invoke(member, a.placed), std::invoke(member, b.placed));
  };
  const CacheNeed &x = a.placed.cache, &y = b.placed.cache;
  return {{most(&MemoryNeed::kv),
           most(&MemoryNeed::workspace),
           most(&MemoryNeed::hidden),
           {std::max(x.ring, y.ring), std::max(x.host, y.host), std::max(x.staging, y.staging),
            std::max(x.disk, y.disk)},
           most(&MemoryNeed::host_workspace)},
          std::max(a.resident, b.resident)};
}

RunPlan plan_run(const RunConfig& config, const Model& model, Device& device, const RunNeed& need) {
  return plan_run(config, model, device, need, plan_weights(model, device, config));
}

RunPlan plan_run(const RunConfig& config, const Model& model, Device& device, const RunNeed& need,
                 const WeightPlan& planned) {
  const MemoryNeed& rows = need.placed;
  RunPlan plan;
  plan.weights = planned;
  plan.offload = options_of(config);
  plan.caches = cache_options_of(config);
  plan.hidden = hidden_options_of(config);
  plan.resident = plan.weights.bytes + need.resident;
  plan.process = resident_memory();
  if (config.placement.automatic)
    plan.offload.shares =
        find_shares(config, model, device, plan.weights, plan.offload, need.resident);

  set_staging(plan, config, model, device, rows);
  // A share that cuts matrices may need larger buffers than none at all.
  if (config.placement.automatic && plan.weights_move() && excess(plan, device) > 0) {
    plan.offload = in_files(options_of(config));
    set_staging(plan, config, model, device, rows);
  }
  const Checkpoint& checkpoint = model.files.checkpoint;  // made-up weights are written first
  const size_t written =
      checkpoint.is_made() && plan.offload.shares.disk > 0 ? checkpoint.made_bytes() : 0;
  plan.disk = tier("memory.disk", config.memory.disk,
                   {{kCache, rows.cache.disk}, {"synthetic weights", written}});
  return plan;
}

std::string over_caps(const RunPlan& plan, const Sources& sources, const Model& model,
                      Device& device) {
  return over_caps(plan, sources, least_of(plan, model, device));
}

std::string misfit(const RunPlan& plan, const Sources& sources, const Model& model,
                   Device& device) {
  const Least least = least_of(plan, model, device);
  std::string why = over_caps(plan, sources, least);
  if (why.empty()) why = over_space(plan, sources);
  if (!why.empty()) return why;
  if (!device.is_host()) {
    const size_t left = device.available(Memory::device);
    if (plan.device.bytes() > left)
      return fmt::format("the device has {} of memory free: this run needs {}{}", bytes_text(left),
                         plan.device.text(), least_text(plan.device, least.device));
    return over_system(plan.host, device.available(Memory::pinned), least.host);
  }
  Tier both = plan.device;
  both.items.insert(both.items.end(), plan.host.items.begin(), plan.host.items.end());
  return over_system(both, device.available(Memory::device), least.device + least.host);
}

RunPlan fitting_plan(const RunConfig& config, const Sources& sources, const Model& model,
                     Device& device, const RunNeed& need) {
  RunPlan plan =
      fitting_plan(config, sources, model, device, need, plan_weights(model, device, config));
  warn_of_idle_keys_found(config, sources, plan.offload.shares);
  warn_of_folder_in_memory(config, sources, plan.disk.bytes());
  return plan;
}

RunPlan fitting_plan(const RunConfig& config, const Sources& sources, const Model& model,
                     Device& device, const RunNeed& need, const WeightPlan& weights) {
  RunPlan plan = plan_run(config, model, device, need, weights);
  const std::string why = misfit(plan, sources, model, device);
  if (!why.empty()) fail(Fault::out_of_memory, "{}", why);
  say_what_was_placed(plan, config, sources, device);
  return plan;
}

RunConfig placed(RunConfig config, const RunPlan& plan) {
  config.placement.automatic = false;
  config.placement.weights = plan.offload.shares;
  if (plan.disk_lanes() > 0) config.prefetch.disk_lanes = plan.disk_lanes();
  return config;
}

}  // namespace hydrant
