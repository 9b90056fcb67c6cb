#include "runtime/apps/plan_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>

#include "offload/weight_prefetcher.hpp"
#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/memory_plan.hpp"
#include "runtime/apps/progress.hpp"
#include "runtime/apps/spill_folder.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

constexpr int32_t kMostRows = 4096;  // that run together
constexpr std::array<int32_t, 6> kGroups{1, 2, 4, 8, 16, 32};
constexpr std::array<int32_t, 3> kMoreSlots{3, 4, 6};
constexpr std::array<int32_t, 3> kFewerLanes{4, 2, 1};  // their buffers take host memory
constexpr double kAsFast = 1.01;  // a plan that is faster by less is not worth more memory
constexpr size_t kRefined = 6;    // options whose slots and types of keys are varied

struct Limits {
  size_t device, host, disk;
  size_t both;  // device and host, where they are the same memory
};

// Where the cache's rows are, and whether weights that the device has no room for come from the
// host as far as that has room, or from the files.
struct Placing {
  Shares cache;
  bool weights_on_host;
};

class Search {
 public:
  Search(const RunConfig& config, const Sources& sources, const Model& model, Device& device,
         const MachineRates& rates)
      : config_(config),
        sources_(sources),
        model_(model),
        device_(device),
        rates_(rates),
        weights_(plan_weights(model, device, config)),
        limits_(limits_of(config)) {}

  PlanFound run() {
    PlanFound found;
    const double parts = double(budgets().size() * prefills().size() * kGroups.size());
    for (const std::string& budget : budgets()) {
      set_budget(budget);
      for (const int32_t tokens : prefills()) {
        base_.batch.prefill_tokens = tokens;
        for (const int32_t groups : kGroups) {
          search_rows(groups, found);
          share_ += 1 / parts;
        }
      }
    }
    if (found.options.empty()) refuse();
    rank(found.options);
    refine(found);
    found.in_place = in_place();
    found.looked_at = looked_at_;
    return found;
  }

 private:
  Limits limits_of(const RunConfig& config) const {
    const auto free = [&](Memory memory) {
      const size_t bytes = device_.available(memory);
      return bytes - std::min(bytes, kProcessRoom);
    };
    std::error_code none;
    const auto space = std::filesystem::space(folder_of(config), none);
    const size_t disk = none ? 0 : space.available;
    if (!device_.is_host())
      return {config.memory.device.value_or(free(Memory::device)),
              config.memory.host.value_or(free(Memory::pinned)), config.memory.disk.value_or(disk),
              SIZE_MAX};
    // The device's part is taken first, but for a little that reads of weights need.
    constexpr uint64_t kSpared = uint64_t{64} << 20;
    const size_t both = free(Memory::device),
                 spared = std::min<size_t>(std::min(config.memory.host.value_or(kSpared), kSpared),
                                           both / 4),
                 device = config.memory.device.value_or(both - spared),
                 rest = both - std::min(device, both);
    return {device, config.memory.host.value_or(rest), config.memory.disk.value_or(disk), both};
  }

  std::vector<std::string> budgets() const {
    return config_.plan.policy == "full" ? std::vector<std::string>{""} : config_.plan.budget;
  }

  // Prompts that are admitted together share a pass over the weights, but all their hidden states
  // and a layer of their keys take room: as many as usual, or one at a time.
  std::vector<int32_t> prefills() const {
    std::vector<int32_t> tokens{config_.batch.prefill_tokens};
    if (config_.plan.prompt_len < tokens.front()) tokens.push_back(config_.plan.prompt_len);
    return tokens;
  }

  // What all options of a budget share.
  void set_budget(const std::string& budget) {
    base_ = config_;
    base_.cache.policy = config_.plan.policy;
    base_.cache.budget = budget;
    if (base_.cache.dtype == "auto") base_.cache.dtype = name(cache_dtype(config_, device_));
    base_.placement = {.automatic = false};
    base_.overlap = true;
    base_.prefetch.disk_lanes = config_.prefetch.disk_lanes.value_or(WeightOffload().disk_lanes);
    const policy::Choice cache = cache_choice(base_.cache, sources_);
    const int64_t rows = config_.plan.rows > 0 ? config_.plan.rows : kMostRows;
    rows_.assign(
        size_t(std::min<int64_t>(rows, kMostRows)),
        sized_request(model_.spec, cache, config_.plan.prompt_len, config_.plan.output_len));
  }

  std::vector<Placing> placings() const {
    std::vector<Shares> caches{{100, 0, 0}, {0, 100, 0}, {50, 50, 0}};
    if (limits_.disk > 0 && config_.memory.disk) caches.push_back({0, 0, 100});
    std::vector<Placing> list;
    for (const Shares& cache : caches)
      for (const bool on_host : {false, true}) list.push_back({cache, on_host});
    return list;
  }

  // Ever more rows, until a batch fits with no placement; then as many as do.
  void search_rows(int32_t groups, PlanFound& found) {
    if (groups > int32_t(rows_.size())) return;
    const auto most = int32_t(ceil_div(int64_t(rows_.size()), int64_t{groups}));
    int32_t fits = 0, rows = 1;
    while (rows <= most && try_rows(rows, groups, found)) {
      fits = rows;
      if (rows == most) return;
      rows = std::min(most, std::max(rows + 1, rows * 4 / 3));
    }
    if (fits == 0 || rows > most) return;
    for (int32_t beyond = rows; beyond - fits > std::max(1, fits / 32);) {
      const int32_t middle = fits + (beyond - fits) / 2;
      (try_rows(middle, groups, found) ? fits : beyond) = middle;
    }
  }

  bool try_rows(int32_t rows, int32_t groups, PlanFound& found) {
    bool any = false;
    bool resident = false;
    for (const Placing& placing : placings()) {
      RunConfig config = base_;
      config.placement.cache = placing.cache;
      config.batch.rows_per_group = rows;
      config.batch.groups = groups;
      std::optional<PlanOption> option = option_of(config, placing.weights_on_host);
      for (const int32_t lanes : fewer_lanes(config)) {
        if (option) break;
        config.prefetch.disk_lanes = lanes;
        option = option_of(config, placing.weights_on_host);
      }
      if (!option) continue;
      any = true;
      // Groups share what is streamed; where nothing is, one does.
      if (groups > 1 && !option->plan.weights_move()) continue;
      if (!option->offloads() && std::exchange(resident, true)) continue;
      found.options.push_back(std::move(*option));
    }
    return any;
  }

  // Than a plan has at first: their buffers may have no room. Those that were asked for stay.
  std::vector<int32_t> fewer_lanes(const RunConfig& config) const {
    std::vector<int32_t> lanes;
    if (!config_.prefetch.disk_lanes)
      for (const int32_t some : kFewerLanes)
        if (some < *config.prefetch.disk_lanes) lanes.push_back(some);
    return lanes;
  }

  // The plan with as much of the weights on the device as has room there.
  std::optional<PlanOption> option_of(RunConfig config, bool weights_on_host) {
    progress_.show(share_, fmt::format("{} plans looked at", looked_at_++));
    PlanOption option;
    option.shape = batch_shape(config.batch);
    const size_t together =
        std::min(rows_.size(), size_t(option.shape.rows_per_group) * size_t(option.shape.groups));
    const std::span<const Request> rows = std::span(rows_).first(together);
    const RunNeed need = run_need(config, model_, device_, option.shape, rows);
    const std::optional<Shares> shares = find_shares(config, need.placed, weights_on_host);
    if (!shares) return std::nullopt;
    config.placement.weights = *shares;
    option.plan = plan_run(config, model_, device_, need, weights_);
    if (!fits(option.plan) &&
        shares->disk > 0) {  // cut matrices may need larger buffers than whole
      config.placement.weights = {0, 0, 100};
      option.plan = plan_run(config, model_, device_, need, weights_);
    }
    option.plan.process = process_;
    if (!fits(option.plan)) return std::nullopt;
    option.work = workload_of(rows);
    if (config_.plan.rows > 0) option.work.rows = config_.plan.rows;
    option.budget = config.cache.budget;
    option.prediction = predict_run(rates_, model_, device_, option.plan, option.shape,
                                    cache_dtype(config, device_), option.work);
    option.config = std::move(config);
    return option;
  }

  bool fits(const RunPlan& plan) const {
    return plan.device.bytes() <= limits_.device && plan.host.bytes() <= limits_.host &&
           plan.disk.bytes() <= limits_.disk &&
           plan.device.bytes() + plan.host.bytes() <= limits_.both;
  }

  // The largest share, in hundredths of a percent, for which `fits` holds; none: not even 0.
  template <class Fits>
  static std::optional<double> largest(double most, const Fits& fits) {
    if (fits(most)) return most;
    if (!fits(0)) return std::nullopt;
    double low = 0, high = most;
    while (high - low > 0.01) {
      const double middle = std::floor((low + high) * 50) / 100;
      if (middle <= low || middle >= high) break;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }

  std::optional<Shares> find_shares(const RunConfig& config, const MemoryNeed& need,
                                    bool on_host) const {
    const size_t taken = need.kv + need.cache.ring + need.workspace,
                 on_host_taken =
                     need.cache.host + need.cache.staging + need.hidden + need.host_workspace;
    if (taken > limits_.device || on_host_taken > limits_.host) return std::nullopt;
    if (weights_.bytes + taken <= limits_.device)
      return on_host ? std::nullopt : std::optional(Shares{});  // the same plan twice is once
    WeightOffload offload;
    offload.slots = config.prefetch.weight_slots;
    offload.disk_lanes = *config.prefetch.disk_lanes;
    // What reads arrive in should leave room for weights; plan_run() takes what is left over.
    offload.arriving = std::min(offload.arriving, limits_.host / kReadingPart);
    const std::optional<double> device = largest(99.99, [&](double share) {
      offload.shares = {share, 0, 100 - share};
      return WeightPrefetcher::unstaged_memory(weights_, model_.spec, offload).on_device() +
                 taken <=
             limits_.device;
    });
    if (!device) return std::nullopt;
    if (!on_host) return Shares{*device, 0, std::round(10000 - 100 * *device) / 100};
    const auto need_of = [&](double share) {
      offload.shares = {*device, share, 100 - *device - share};
      return WeightPrefetcher::memory(model_.files.checkpoint, model_.spec, weights_, device_.ops(),
                                      offload);
    };
    const auto fits = [&](double share) {
      return need_of(share).on_host() + on_host_taken <= limits_.host;
    };
    // Staging changes little with the share, and takes most of the time: once for all that read.
    std::optional<double> host;
    if (const double most = 100 - *device; fits(most)) {
      host = most;
    } else {
      const size_t staging = need_of(0).staging + on_host_taken;
      host = largest(most, [&](double share) {
        offload.shares = {*device, share, 100 - *device - share};
        return WeightPrefetcher::unstaged_memory(weights_, model_.spec, offload).host_homes +
                   staging <=
               limits_.host;
      });
      if (host && !fits(*host)) host = largest(*host, fits);
    }
    if (!host || *host == 0) return std::nullopt;
    return Shares{*device, *host, std::round(10000 - 100 * (*device + *host)) / 100};
  }

  // The fastest first; of those that are as fast, the one that takes least memory.
  static void rank(std::vector<PlanOption>& options) {
    std::stable_sort(options.begin(), options.end(),
                     [](const auto& a, const auto& b) { return a.speed() > b.speed(); });
    const auto as_fast = std::find_if(options.begin(), options.end(), [&](const PlanOption& o) {
      return o.speed() * kAsFast < options.front().speed();
    });
    std::stable_sort(options.begin(), as_fast,
                     [](const auto& a, const auto& b) { return a.plan.peak() < b.plan.peak(); });
  }

  // More slots, fewer lanes, and other keys and values where that was left open.
  void refine(PlanFound& found) {
    std::vector<PlanOption> more;
    for (size_t i = 0; i < std::min(found.options.size(), kRefined); i++) {
      const PlanOption& option = found.options[i];
      const bool on_host = option.plan.offload.shares.host > 0;
      const auto add = [&](const RunConfig& config) {
        set_budget(option.budget);
        if (auto better = option_of(config, on_host)) more.push_back(std::move(*better));
      };
      if (option.plan.weights_move())
        for (const int32_t slots : kMoreSlots) {
          RunConfig config = option.config;
          config.prefetch.weight_slots = slots;
          add(config);
        }
      if (option.plan.offload.shares.disk > 0)
        for (const int32_t lanes : fewer_lanes(option.config)) {
          RunConfig config = option.config;
          config.prefetch.disk_lanes = lanes;
          add(config);
        }
      if (config_.cache.dtype == "auto" && cache_dtype(config_, device_) != DType::f32) {
        RunConfig config = option.config;
        config.cache.dtype = "f16";
        add(config);
      }
    }
    for (PlanOption& option : more)
      if (option.speed() > kAsFast * found.options.front().speed())
        found.options.push_back(std::move(option));
    rank(found.options);
  }

  std::optional<PlanOption> in_place() {
    if (!device_.is_host() || !config_.memory.device) return std::nullopt;
    const Limits given = limits_;
    limits_.device += std::exchange(limits_.host, 0);
    PlanFound found;
    for (const std::string& budget : budgets()) {
      set_budget(budget);
      for (const int32_t tokens : prefills()) {
        base_.batch.prefill_tokens = tokens;
        search_rows(1, found);
      }
    }
    limits_ = given;
    std::erase_if(found.options, [](const PlanOption& o) { return o.offloads(); });
    if (found.options.empty()) return std::nullopt;
    rank(found.options);
    return std::move(found.options.front());
  }

  [[noreturn]] void refuse() {
    RunConfig config = base_;
    config.placement.weights = {0, 0, 100};
    config.prefetch.disk_lanes = config_.prefetch.disk_lanes;
    config.batch.rows_per_group = config.batch.groups = 1;
    const RunNeed need =
        run_need(config, model_, device_, batch_shape(config.batch), std::span(rows_).first(1));
    const RunPlan plan = plan_run(config, model_, device_, need);
    const std::string why = misfit(plan, config, sources_, model_, device_, need);
    fail(Fault::out_of_memory, "{}",
         why.empty() ? fmt::format("not even one row fits: {}", memory_line(plan)) : why);
  }

  const RunConfig& config_;
  const Sources& sources_;
  const Model& model_;
  Device& device_;
  const MachineRates& rates_;
  WeightPlan weights_;
  Limits limits_;
  const size_t process_ = resident_memory();  // before the search, which takes memory of its own
  RunConfig base_;
  std::vector<Request> rows_;
  size_t looked_at_ = 0;
  Progress progress_{"planning", config_.quiet, std::chrono::seconds(1)};
  double share_ = 0;  // of the search
};

}  // namespace

PlanFound search_plans(const RunConfig& config, const Sources& sources, const Model& model,
                       Device& device, const MachineRates& rates) {
  return Search(config, sources, model, device, rates).run();
}

}  // namespace hydrant
