#include "runtime/apps/memory_plan.hpp"

#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/idle_keys.hpp"
#include "runtime/apps/spill_folder.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
Request sized_request(const ModelSpec& spec, const policy::Choice& cache, int64_t prompt,
                      int64_t output) {
  Request request;
  request.prompt.assign(size_t(prompt), 0);
  request.max_new_tokens = int32_t(output);
  request.plans = policy::plan(cache, spec.layers, prompt, output);
  return request;
}

MemoryPlan plan_memory(const RunConfig& config, const Sources& sources, const Model& model,
                       Device& device) {
  const InspectConfig& asked = config.inspect;
  MemoryPlan plan;
  plan.batch = asked.batch;
  plan.length = asked.length > 0 ? asked.length : model.spec.max_positions;
  plan.prompt = asked.prompt_len > 0 ? asked.prompt_len : std::max<int64_t>(plan.length - 1, 1);
  // The last token is chosen but not fed.
  const int64_t most = model.spec.max_positions + int64_t{1};
  if (plan.length < 2 || (config.cache.positions == "original" && plan.length > most))
    fail(Fault::bad_config, "{}: must be 2 to {} for the model's {} positions, not {}",
         sources.name("inspect.length"), most, most - 1, plan.length);
  if (plan.prompt >= plan.length)
    fail(Fault::bad_config, "{}: must be 1 to {}, to leave one of {} tokens to generate, not {}",
         sources.name("inspect.prompt_len"), plan.length - 1, plan.length, plan.prompt);
  const policy::Choice cache = cache_choice(config.cache, sources);
  const std::vector<Request> rows(
      size_t(plan.batch), sized_request(model.spec, cache, plan.prompt, plan.length - plan.prompt));
  warn_of_few_sinks(cache, rows);
  plan.slots = rows.front().plans.front().slots.capacity();

  BatchShape shape = batch_shape(config.batch);
  shape.rows_per_group = asked.batch;
  shape.groups = 1;
  const RunNeed need = run_need(config, model, device, shape, rows);
  const std::vector<Request> full(rows.size(), with_full_cache(rows.front()));
  plan.full_kv = run_need(config, model, device, shape, full).placed.all_kv();
  plan.run = plan_run(config, model, device, need);
  plan.kv = plan.run.rows.all_kv();
  plan.workspace = plan.run.rows.workspace;
  warn_of_idle_keys_found(config, sources, placed(config, plan.run).placement);
  warn_of_folder_in_memory(config, sources, plan.run.disk.bytes());
  plan.misfit = misfit(plan.run, config, sources, model, device, need);
  return plan;
}

}  // namespace hydrant
