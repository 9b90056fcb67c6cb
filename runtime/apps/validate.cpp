#include <filesystem>

#include "runtime/apps/command.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/memory_plan.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/rows.hpp"
#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// The file may be meant for another machine: what this one lacks is none of its mistakes.
template <class Check>
void warn_where_refused(const Check& check) {
  try {
    check();
  } catch (const Error& e) {
    log::warning("on this machine a run would be refused: {}", e.what());
  }
}

// Null where there is none to try; check_config has said so of one that was named.
std::unique_ptr<Device> device_here(const RunConfig& config) {
  for (const Backend& b : backends())
    if (b.name == config.device && !b.usable()) return nullptr;
  std::unique_ptr<Device> device;
  warn_where_refused([&] { device = open_device(config); });
  return device;
}

// The job's own rows where the file has them, else the least that any run would need.
void check_memory(const RunConfig& config, const Sources& sources, const Model& model,
                  const PromptMaker& maker, std::vector<Request> rows, Device& device) {
  BatchShape shape = batch_shape(config.batch);
  const bool least = rows.empty();
  if (least) {
    rows.push_back(sized_request(model.spec, maker.cache, 1, 1));
    shape = {1, 1, 1, 1};
  }
  const RunNeed need = run_need(config, model, device, shape, rows);
  const RunPlan plan = plan_run(config, model, device, need);
  const auto refuse = [&](const std::string& why) {
    if (!why.empty())
      fail(Fault::out_of_memory, "{}{}", why, least ? " for one row of one token" : "");
  };
  refuse(over_caps(plan, config, sources, model, device, need));
  warn_where_refused([&] { refuse(misfit(plan, config, sources, model, device, need)); });
}

// What generate would refuse before it reads a weight.
void check_with_model(const RunConfig& config, const Sources& sources, Device* device) {
  if (!sources.given("model")) return;
  std::error_code unreadable;
  if (!std::filesystem::exists(config.model, unreadable))
    return log::warning("{}: {} is not here; what depends on it has not been checked",
                        sources.name("model"), config.model);
  const Model model = open_described_model(config, sources);
  const auto tokenizer = open_tokenizer(model.files);
  const PromptMaker maker = prompt_maker(*tokenizer, config, sources, model);
  std::vector<Request> rows;
  if (config.prompt && *config.prompt != "-") rows = generate_job(maker, sources).requests;
  if (device) check_memory(config, sources, model, maker, std::move(rows), *device);
}

}  // namespace

// The file has been read and its keys have been checked; what is left is to show all of it.
int run_validate(const RunConfig& config, const Sources& sources) {
  for (const auto& [path, key] :
       {std::pair(&config.output, "output"), std::pair(&config.bench.json, "bench.json"),
        std::pair(&config.bench.csv, "bench.csv")})
    warn_where_refused([&, path = path, key = key] { check_writable(*path, sources.name(key)); });
  const auto device = device_here(config);
  check_with_model(config, sources, device.get());
  Output("").write(effective_config(config, Command::validate).dump(2) + "\n");
  return 0;
}

}  // namespace hydrant
