// Where a run's memory goes, tier by tier, before anything is loaded.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "offload/cache_offload.hpp"
#include "offload/hidden_offload.hpp"
#include "offload/weight_offload.hpp"
#include "runtime/apps/assemble.hpp"

namespace hydrant {

inline constexpr const char* kCacheItem = "KV cache";

struct MemoryItem {
  std::string what;
  size_t bytes = 0;
};

struct Tier {
  const char* key = "";  // "memory.device"
  std::optional<uint64_t> cap;
  std::vector<MemoryItem> items;  // none of them empty

  size_t bytes() const;
  std::string text() const;  // "80.0 MiB: weights 50.0 MiB, KV cache 30.0 MiB", the largest first
};

// The rest of a process: the program, the tokenizer and the model's description are resident when
// the run is planned, and this is for what comes later: the stacks of its threads, a few MiB for
// each of them while weights are loaded, the rows' results.
inline constexpr size_t kProcessRoom = size_t{64} << 20;

// The part of a tier that what reads arrive in may take where weights could use it.
inline constexpr size_t kReadingPart = 8;

struct RunPlan {
  WeightPlan weights;
  WeightOffload offload;  // of weights, with the shares that hold
  CacheOffload caches;
  HiddenOffload hidden;
  MemoryNeed rows;  // as they are placed
  Tier device, host, disk;
  size_t resident = 0;  // what the device would hold with everything there
  size_t process = 0;   // resident when planned

  bool weights_move() const { return offload.shares.device != 100; }
  bool caches_move() const { return caches.shares.device != 100; }
  bool hidden_moves() const { return hidden.shares.device != 100; }
  // Reads of the model's files that are under way at a time; 0: nothing is read from them.
  int disk_lanes() const {
    return !weights_move() || offload.shares.disk == 0 ? 0
           : offload.overlap                           ? offload.disk_lanes
                                                       : 1;
  }
  bool all_on_device() const { return !weights_move() && !caches_move() && !hidden_moves(); }
  size_t peak() const { return device.bytes() + host.bytes() + process; }  // as it is expected
  size_t most() const { return peak() + kProcessRoom; }                    // never more
};

// What rows take beside the weights: where the configuration has it, and were all on the device.
struct RunNeed {
  MemoryNeed placed;
  size_t resident = 0;
  // Under another configuration of placement, prefetch and overlap. Model, device and rows outlive
  // it.
  std::function<MemoryNeed(const RunConfig&)> of;
};
RunNeed run_need(const RunConfig& config, const Model& model, Device& device,
                 const BatchShape& shape, std::span<const Request> rows);
RunNeed larger(const RunNeed& a, const RunNeed& b);  // enough for either

// By the configuration's placement; "auto" keeps as large a share of the weights on the device as
// has room there and leaves the rest in the model's files. Where the cache has no room beside the
// least that weights take, as few of its rows as need be are on disk, on a card on the host first.
// It may be a plan that does not fit.
RunPlan plan_run(const RunConfig& config, const Model& model, Device& device, const RunNeed& need);
// The same with weights that have been planned.
RunPlan plan_run(const RunConfig& config, const Model& model, Device& device, const RunNeed& need,
                 const WeightPlan& weights);

// Of the tiers, when all weights are left in the model's files and read by one lane, and rings have
// two slots; or nothing is moved ahead, where the configuration has no overlap.
struct Least {
  size_t device = 0, host = 0;
};
Least least_of(const RunPlan& plan, const RunConfig& config, const Model& model, Device& device,
               const RunNeed& need);

// Why it does not fit, "" when it does: the cap, or what the system has, that is less than a tier
// takes; the tier's parts, the largest first; the least that would do.
std::string misfit(const RunPlan& plan, const RunConfig& config, const Sources& sources,
                   const Model& model, Device& device, const RunNeed& need);

// The part of it that is the same on any machine: over a cap.
std::string over_caps(const RunPlan& plan, const RunConfig& config, const Sources& sources,
                      const Model& model, Device& device, const RunNeed& need);

// A plan that fits; throws out_of_memory when there is none. Says what "auto" has chosen, and warns
// of a placement that only costs time.
RunPlan fitting_plan(const RunConfig& config, const Sources& sources, const Model& model,
                     Device& device, const RunNeed& need);
RunPlan fitting_plan(const RunConfig& config, const Sources& sources, const Model& model,
                     Device& device, const RunNeed& need, const WeightPlan& weights);

// The configuration with the placement and the number of lanes that were found.
RunConfig placed(RunConfig config, const RunPlan& plan);

// "memory: device 152.1 MiB of 200.0 MiB: weights 138.2 MiB, ...; host ...; with the process 172.3
// MiB, at most 236.3 MiB"
std::string memory_line(const RunPlan& plan);

size_t resident_memory();  // of the process, now

}  // namespace hydrant
