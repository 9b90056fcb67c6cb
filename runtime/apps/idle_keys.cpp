#include "runtime/apps/idle_keys.hpp"

#include <initializer_list>

#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

bool all_on_device(const Shares& shares) { return shares.device == 100; }

void unused(const Sources& sources, std::initializer_list<const char*> paths, const char* why) {
  std::vector<const char*> given;
  for (const char* path : paths)
    if (sources.given(path)) given.push_back(path);
  if (!given.empty()) log::warning("{}: no effect {}", sources.names(given), why);
}

}  // namespace

Still& Still::operator&=(const Still& other) {
  weights = weights && other.weights;
  cache = cache && other.cache;
  activations = activations && other.activations;
  written = written || other.written;
  return *this;
}

Still still(const PlacementConfig& p, const RunConfig& config) {
  const bool found_later = p.automatic, synthetic = !config.synthetic.shape.empty();
  return {!found_later && all_on_device(p.weights), !found_later && all_on_device(p.cache),
          all_on_device(p.activations),
          found_later || p.cache.disk > 0 || (synthetic && p.weights.disk > 0)};
}

void warn_of_idle_weight_keys(const Sources& sources, const Still& still) {
  if (!still.weights) return;
  unused(sources, {"prefetch.weight_slots", "prefetch.disk_lanes"},
         "with all weights on the device");
  if (still.cache && still.activations)
    unused(sources, {"overlap", "memory.link"}, "with everything on the device");
}

void warn_of_idle_cache_keys(const Sources& sources, const Still& still) {
  if (still.cache && still.activations)
    unused(sources, {"prefetch.cache_slots", "cache_compute"}, "with the cache on the device");
  else if (still.cache)
    unused(sources, {"cache_compute"}, "with the cache on the device");
}

void warn_of_idle_disk_keys(const Sources& sources, const Still& still) {
  if (!still.written) unused(sources, {"memory.disk", "memory.folder"}, "without a cache on disk");
}

void warn_of_idle_keys_found(const RunConfig& config, const Sources& sources,
                             const PlacementConfig& found) {
  if (!config.placement.automatic) return;  // known before, and said
  const Still known = still(found, config);
  warn_of_idle_weight_keys(sources, known);
  warn_of_idle_cache_keys(sources, known);
  warn_of_idle_disk_keys(sources, known);
}

void warn_of_idle_groups(const RunConfig& config, const Sources& sources, size_t rows) {
  const auto groups = size_t(config.batch.groups), room = size_t(config.batch.rows_per_group);
  const size_t needed = rows / room + (rows % room > 0);
  if (sources.given("batch.groups") && rows > 0 && groups > needed)
    log::warning("{}: {} of {} groups are used: {} row{}, {} in a group",
                 sources.name("batch.groups"), needed, groups, rows, rows == 1 ? "" : "s", room);
}

}  // namespace hydrant
