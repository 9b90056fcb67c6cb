// Keys that nothing comes of in a run as it is placed: said in one warning line each.
#pragma once
#include <cstddef>

#include "runtime/apps/run_config.hpp"

namespace hydrant {

// What never leaves the device, and whether anything is written to disk.
struct Still {
  bool weights = true, cache = true, activations = true, written = false;
  Still& operator&=(const Still& other);  // what holds for two runs together
};
// A placement that is still to be found moves weights and cache, as far as is known.
Still still(const PlacementConfig& placement, const RunConfig& config);

void warn_of_idle_weight_keys(const Sources& sources, const Still& still);
void warn_of_idle_cache_keys(const Sources& sources, const Still& still);
void warn_of_idle_disk_keys(const Sources& sources, const Still& still);
// Once it is known where things are for which no place was given.
void warn_of_idle_keys_found(const RunConfig& config, const Sources& sources,
                             const PlacementConfig& found);
// `rows`: those of the job.
void warn_of_idle_groups(const RunConfig& config, const Sources& sources, size_t rows);

}  // namespace hydrant
