#include "runtime/apps/command.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/plan_report.hpp"
#include "runtime/apps/profile_file.hpp"
#include "runtime/apps/spill_folder.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {

int run_plan(const RunConfig& config, const Sources& sources) {
  if (!config.plan.output.empty()) check_writable(config.plan.output, sources.name("plan.output"));
  const MachineRates rates = read_profile(config.plan.profile);
  const Model model = open_model_or_shape(config, sources);
  const int64_t length = int64_t{config.plan.prompt_len} + config.plan.output_len,
                most = model.spec.max_positions + int64_t{1};
  if (config.cache.positions == "original" && length > most)
    fail(Fault::bad_config, "{}: a row of {} + {} tokens is beyond the model's {} positions",
         sources.name("plan.output_len"), config.plan.prompt_len, config.plan.output_len, most - 1);
  const auto device = open_device(config);
  warn_of_other_machine(rates, config.plan.profile, *device);
  const PlanFound found = search_plans(config, sources, model, *device, rates);
  warn_of_folder_in_memory(config, sources, found.options.front().plan.disk.bytes());
  Output("").write(plan_text(found, model, *device, config));
  if (config.plan.output.empty()) return 0;
  write_file(config.plan.output, plan_config(found.options.front(), model).dump(2) + "\n");
  if (!model.has_weights())
    log::info("{}: a shape has no weights: name a model beside --config {}", config.model,
              config.plan.output);
  return 0;
}

}  // namespace hydrant
