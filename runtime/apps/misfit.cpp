// Why a run's plan does not fit into memory, in words.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "runtime/apps/figures.hpp"
#include "runtime/apps/run_plan.hpp"

namespace hydrant {
namespace {

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
  mapped *= size_t(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<size_t>(limit.rlim_cur, mapped);
}

// Which limit it is that leaves no more to the system's part of a run.
std::string system_text(size_t available) {
  constexpr size_t kBetweenLooks = size_t{1} << 20;
  const std::optional<size_t> left = left_to_map();
  return left && *left <= available + kBetweenLooks
             ? fmt::format("this process may map {} more (ulimit -v)", bytes_text(available))
             : fmt::format("the system has {} of memory free", bytes_text(available));
}

// Of a tier: as the run overlaps, and one after the other.
struct LeastBytes {
  size_t as_asked = 0, in_turns = 0;
};

std::string least_text(const Tier& tier, const LeastBytes& least, const RunConfig& config,
                       const Shares& cache) {
  const auto turns = [&] { return bytes_text(least.in_turns); };
  if (least.as_asked < tier.bytes())
    return fmt::format("; with all weights left in the files{} {} would do{}",
                       !config.overlap ? ""
                       : config.prefetch.cache_slots == 2
                           ? " (prefetch.disk_lanes 1, weight_slots 2)"
                           : " (prefetch.disk_lanes 1, slots 2)",
                       bytes_text(least.as_asked),
                       least.in_turns < least.as_asked ? ", without overlap " + turns() : "");
  if (least.in_turns < tier.bytes())
    return fmt::format("; with all weights left in the files and without overlap {} would do",
                       turns());
  const bool all_on_disk = cache.disk == 100 && tier.key != std::string_view("memory.disk");
  const bool cached =
      !all_on_disk && std::any_of(tier.items.begin(), tier.items.end(),
                                  [](const MemoryItem& item) { return item.what == kCacheItem; });
  return cached ? "; less will not do with the cache where it is (placement.cache)"
                : "; less will not do";
}

// Of one plan. What would do is looked for only when something does not.
class Misfit {
 public:
  Misfit(const RunPlan& plan, const RunConfig& config, const Sources& sources, const Model& model,
         Device& device, const RunNeed& need)
      : plan_(plan),
        config_(config),
        sources_(sources),
        model_(model),
        device_(device),
        need_(need) {}

  std::string over_caps() const {
    std::string why = over_cap(plan_.device, &Least::device);
    if (why.empty()) why = over_cap(plan_.host, &Least::host);
    if (why.empty() && is_over(plan_.disk))
      why =
          not_enough(plan_.disk) + least_text(plan_.disk, {plan_.disk.bytes(), plan_.disk.bytes()},
                                              config_, plan_.caches.shares);
    return why;
  }

  std::string here() const {
    std::string why = over_caps();
    if (why.empty()) why = over_space(plan_, sources_);
    if (!why.empty()) return why;
    const size_t free = device_.available(Memory::device);
    if (device_.is_host()) {
      Tier both = plan_.device;
      both.items.insert(both.items.end(), plan_.host.items.begin(), plan_.host.items.end());
      return over_system(both, free, [](const Least& l) { return l.device + l.host; });
    }
    if (plan_.device.bytes() > free)
      return fmt::format("the device has {} of memory free: this run needs {}{}", bytes_text(free),
                         plan_.device.text(), least(plan_.device, &Least::device));
    return over_system(plan_.host, device_.available(Memory::pinned), &Least::host);
  }

 private:
  static bool is_over(const Tier& tier) { return tier.cap && tier.bytes() > *tier.cap; }
  std::string not_enough(const Tier& tier) const {
    return fmt::format("{}: {} are not enough: this run needs {}", sources_.name(tier.key),
                       bytes_text(*tier.cap), tier.text());
  }

  template <class Part>
  std::string least(const Tier& tier, const Part& part) const {
    const auto bytes = [&](bool overlap) {
      RunConfig config = config_;
      config.overlap = overlap;
      return std::invoke(part, least_of(plan_, config, model_, device_, need_));
    };
    return least_text(tier, {bytes(config_.overlap), bytes(false)}, config_, plan_.caches.shares);
  }
  template <class Part>
  std::string over_cap(const Tier& tier, const Part& part) const {
    return is_over(tier) ? not_enough(tier) + least(tier, part) : "";
  }
  template <class Part>
  std::string over_system(const Tier& tier, size_t available, const Part& part) const {
    if (tier.bytes() <= available) return "";
    return fmt::format("{}: this run needs {}{}", system_text(available), tier.text(),
                       least(tier, part));
  }

  const RunPlan& plan_;
  const RunConfig& config_;
  const Sources& sources_;
  const Model& model_;
  Device& device_;
  const RunNeed& need_;
};

}  // namespace

std::string over_caps(const RunPlan& plan, const RunConfig& config, const Sources& sources,
                      const Model& model, Device& device, const RunNeed& need) {
  return Misfit(plan, config, sources, model, device, need).over_caps();
}

std::string misfit(const RunPlan& plan, const RunConfig& config, const Sources& sources,
                   const Model& model, Device& device, const RunNeed& need) {
  return Misfit(plan, config, sources, model, device, need).here();
}

}  // namespace hydrant
