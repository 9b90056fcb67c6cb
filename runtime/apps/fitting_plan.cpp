// A plan that is known to fit, and what is said of it.
#include <algorithm>

#include "runtime/apps/figures.hpp"
#include "runtime/apps/idle_keys.hpp"
#include "runtime/apps/run_plan.hpp"
#include "runtime/apps/spill_folder.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// What the keys are called that place something elsewhere.
std::string placing_keys(const RunPlan& plan, const Sources& sources) {
  std::vector<const char*> keys;
  const auto add = [&](bool moves, const char* part) {
    if (moves && sources.given(part)) keys.push_back(part);
  };
  add(plan.weights_move(), "placement.weights");
  add(plan.caches_move(), "placement.cache");
  add(plan.hidden_moves(), "placement.activations");
  return keys.empty() ? sources.name("placement") : sources.names(keys);
}

// One line for what was chosen, or for a choice that only costs time.
void say_what_was_placed(const RunPlan& plan, const RunConfig& config, const Sources& sources,
                         const Device& device) {
  if (plan.all_on_device()) return;
  const Shares& shares = plan.offload.shares;
  if (config.placement.automatic) {
    const Shares& cache = plan.caches.shares;
    log::info("{} auto: {}{}", sources.name("placement"),
              plan.weights_move()
                  ? fmt::format("{} % of the weights are on the device, the others are read from "
                                "the model's files in each step",
                                shares.device)
                  : "all weights are on the device",
              plan.caches_move() ? fmt::format("; of the cache's rows {} % are on the device, {} % "
                                               "on the host, {} % on disk",
                                               cache.device, cache.host, cache.disk)
                                 : "");
    return;
  }
  const size_t available = device.available(Memory::device),
               limit = std::min<size_t>(config.memory.device.value_or(available), available);
  if (plan.resident <= limit)
    log::warning("{}: all would fit on the device ({} of {}): what is elsewhere only costs time",
                 placing_keys(plan, sources), bytes_text(plan.resident), bytes_text(limit));
  else if (shares.host > 0 && device.is_host())
    log::info(
        "{}: host memory is the {} device's own: weights are copied from memory to memory, as "
        "tests and comparisons want it",
        sources.name(sources.given("placement.weights") ? "placement.weights" : "placement"),
        device.name());
}

}  // namespace

RunPlan fitting_plan(const RunConfig& config, const Sources& sources, const Model& model,
                     Device& device, const RunNeed& need) {
  RunPlan plan =
      fitting_plan(config, sources, model, device, need, plan_weights(model, device, config));
  warn_of_idle_keys_found(config, sources, placed(config, plan).placement);
  warn_of_folder_in_memory(config, sources, plan.disk.bytes());
  return plan;
}

RunPlan fitting_plan(const RunConfig& config, const Sources& sources, const Model& model,
                     Device& device, const RunNeed& need, const WeightPlan& weights) {
  RunPlan plan = plan_run(config, model, device, need, weights);
  const std::string why = misfit(plan, config, sources, model, device, need);
  if (!why.empty()) fail(Fault::out_of_memory, "{}", why);
  say_what_was_placed(plan, config, sources, device);
  return plan;
}

}  // namespace hydrant
