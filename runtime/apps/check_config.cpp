#include "runtime/apps/check_config.hpp"

#include <algorithm>

#include "policies/registry.hpp"
#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/check_output.hpp"
#include "runtime/apps/idle_keys.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/spill_folder.hpp"
#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

bool is_flag(const Sources& sources, const char* path) {
  return sources.given(path) && sources.name(path).starts_with("--");
}

void require(const Sources& sources, const char* path, const char* flag) {
  if (!sources.given(path)) fail(Fault::bad_config, "{}: is needed", flag);
}

void exclude(const Sources& sources, const char* a, const char* b) {
  if (sources.given(a) && sources.given(b))
    fail(Fault::bad_config, "{}: cannot stand beside {}", sources.name(a), sources.name(b));
}

// Exactly one of two keys.
void require_one(const Sources& sources, const char* a, const char* b) {
  exclude(sources, a, b);
  if (!sources.given(a) && !sources.given(b))
    fail(Fault::bad_config, "--{}: is needed, or --{}", a, b);
}

void check_generate(const RunConfig& config, const Sources& sources) {
  require_one(sources, "prompt", "prompts");
  const auto unused = [&](const char* path, const char* why) {
    if (sources.given(path)) log::warning("{} has no effect {}", sources.name(path), why);
  };
  if (config.sampling.temperature == 0)
    for (const char* path : {"sampling.top_k", "sampling.top_p", "sampling.min_p", "seed"})
      unused(path, "at temperature 0 (greedy)");
  if (!config.chat) unused("system", "without --chat");
  if (config.prompt && config.output.empty())
    for (const char* path : {"logprobs", "report_kept"}) unused(path, "without --output");
}

// What a command refuses of keys that stand together.
void check_resume(const RunConfig& config, const Sources& sources, Command command) {
  if (!config.resume) return;
  if (config.overwrite)
    fail(Fault::bad_config, "{}: cannot stand beside {}", sources.name("resume"),
         sources.name("overwrite"));
  if (command == Command::generate) exclude(sources, "resume", "prompt");
  if (command == Command::score) exclude(sources, "resume", "perplexity");
}

// A configuration may be checked on another machine than the one that is to run it, but not by
// another build.
void check_device(const RunConfig& config, const Sources& sources, Command command) {
  if (is_automatic(config.device)) return;
  const DeviceName wanted = parse_device(config.device);
  std::string known;
  for (const Backend& b : backends()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", b.name);
    if (b.name != wanted.backend) continue;
    const std::string why = trouble_with(b, wanted.index);
    if (why.empty()) return;
    if (command != Command::validate)
      fail(Fault::bad_config, "{}: this machine has no usable {} device: {}",
           sources.name("device"), b.name, why);
    log::warning("{}: this machine has no usable {} device: {}", sources.name("device"), b.name,
                 why);
    return;
  }
  fail(Fault::bad_config, "{}: must be one of this build's backends ({}), not '{}'",
       sources.name("device"), known, config.device);
}

// The same for a path that the build has.
void check_isa(const RunConfig& config, const Sources& sources, Command command) {
  if (config.isa.empty()) return;
  std::string usable;
  for (const Backend& b : backends()) {
    if (!b.paths || !b.usable() ||
        (!is_automatic(config.device) && parse_device(config.device).backend != b.name))
      continue;
    for (const InstructionPath& path : b.paths()) {
      if (path.name == config.isa) return;
      usable += fmt::format("{}{}", usable.empty() ? "" : ", ", path.name);
    }
  }
  if (usable.empty()) return;  // a device that knows none
  const std::string wrong = fmt::format("{}: this machine cannot use '{}', only {}",
                                        sources.name("isa"), config.isa, usable);
  if (command != Command::validate) fail(Fault::bad_config, "{}", wrong);
  log::warning("{}", wrong);
}

void check_cache(const RunConfig& config, const Sources& sources) {
  cache_choice(config.cache, sources);  // throws where it is none
  warn_of_sizes_set_aside(config.cache, sources);
}

// What holds for each placement. A configuration may be checked on another machine than the one
// that is to run it.
void check_homes(const PlacementConfig& p, const std::string& hidden, const RunConfig& config,
                 const Sources& sources, Command command) {
  if (p.activations.disk > 0)
    fail(Fault::bad_config, "{}: must be 100 together on device and host, not on disk", hidden);
  const bool written = p.cache.disk > 0 || (!config.synthetic.shape.empty() && p.weights.disk > 0);
  const std::string why = written ? trouble_with_folder(config, sources) : "";
  if (why.empty()) return;
  if (command != Command::validate) fail(Fault::bad_config, "{}", why);
  log::warning("on this machine a run would be refused: {}", why);
}

void check_placement(const RunConfig& config, const Sources& sources, Command command) {
  const PlacementConfig& p = config.placement;
  for (const char* path : {"placement.weights", "placement.cache", "placement.activations"})
    for (const char* whole : {"placement", "bench.placement"})
      if (is_flag(sources, whole) && is_flag(sources, path)) exclude(sources, whole, path);
  for (const PlacementConfig& one : config.bench.placement)
    check_homes(one, sources.name("bench.placement"), config, sources, command);
  if (command == Command::bench && !config.bench.placement.empty()) return;  // some use all
  check_homes(
      p,
      sources.name(sources.given("placement.activations") ? "placement.activations" : "placement"),
      config, sources, command);
  if (command == Command::plan) return;  // it looks for places itself
  const Still known = still(p, config);
  warn_of_idle_weight_keys(sources, known);
  warn_of_idle_cache_keys(sources, known);
  warn_of_idle_disk_keys(sources, known);
}

void check_bench(const RunConfig& config, const Sources& sources) {
  if (sources.given("model") == sources.given("synthetic")) {
    exclude(sources, "model", "synthetic");
    fail(Fault::bad_config, "--model: is needed, or --synthetic");
  }
  const auto unused = [&](std::initializer_list<const char*> paths, const char* why) {
    for (const char* path : paths)
      if (sources.given(path)) log::warning("{} has no effect {}", sources.name(path), why);
  };
  const auto none = [&](const auto& uses) {
    return std::none_of(config.bench.policy.begin(), config.bench.policy.end(), uses);
  };
  if (none([](const std::string& policy) { return policy != "full"; }))
    unused({"bench.budget"}, "on the policy 'full'");
  if (none([](const std::string& policy) {
        return policy::regions(policy::policy_named(policy).value()).sinks;
      }))
    unused({"cache.sinks"}, "on policies without sinks");
  if (config.synthetic.shape.empty()) return unused({"synthetic_format", "seed"}, "on a model");
  unused({"bench.text"}, "on synthetic weights, which get random prompts");
  if (config.bench.agreement)
    unused({"bench.agreement"}, "on synthetic weights, whose choices mean nothing");
}

// In one line, and not as a warning: a file may well serve several commands, as those of plan do.
void tell_keys_of_other_commands(const Sources& sources, Command command) {
  std::string unused;
  for (const Key& key : config_keys())
    if (sources.given(key.path) && !key.commands.has(command))
      unused += fmt::format("{}{}", unused.empty() ? "" : ", ",
                            unused.empty() ? sources.name(key.path) : key.path);
  if (!unused.empty()) log::info("{}: no effect on {}", unused, name(command));
}

// What any command would refuse of what the file says. What it does not say may still be a flag.
void check_whole_file(const RunConfig& config, const Sources& sources) {
  exclude(sources, "prompt", "prompts");
  exclude(sources, "perplexity", "input");
  exclude(sources, "model", "synthetic");
  for (const Command command : {Command::generate, Command::score})
    check_resume(config, sources, command);
  check_cache(config, sources);
  if (sources.given("output"))
    check_output(
        config, sources,
        sources.given("prompt") || sources.given("prompts") ? Command::generate : Command::score);
  check_bench_output(config, sources);
  check_profile_output(config, sources);
  check_plan_output(config, sources);
  check_trace_output(config, sources);
}

// Only `inspect --devices` needs none.
void check_model(const RunConfig& config, const Sources& sources, Command command) {
  if (command != Command::inspect) return require(sources, "model", "--model");
  if (config.inspect.devices)
    exclude(sources, "inspect.devices", "model");
  else
    require(sources, "model", "MODEL");
}

}  // namespace

void check_config(const RunConfig& config, const Sources& sources, Command command) {
  check_device(config, sources, command);
  check_isa(config, sources, command);
  check_placement(config, sources, command);
  if (command == Command::validate) return check_whole_file(config, sources);
  check_resume(config, sources, command);
  tell_keys_of_other_commands(sources, command);
  if (command == Command::profile) return check_profile_output(config, sources);
  if (command == Command::bench)
    check_bench(config, sources);
  else
    check_model(config, sources, command);
  if (command == Command::generate) check_generate(config, sources);
  if (command == Command::score) require_one(sources, "perplexity", "input");
  if (command == Command::score && config.perplexity.empty() && sources.given("context"))
    log::warning("{} has no effect without --perplexity", sources.name("context"));
  if (command == Command::tokenize) require(sources, "input", "--input");
  if (command == Command::generate || command == Command::score || command == Command::inspect)
    check_cache(config, sources);
  if (command == Command::generate || command == Command::score || command == Command::tokenize)
    check_output(config, sources, command);
  if (command == Command::bench) check_bench_output(config, sources);
  if (command == Command::generate || command == Command::score || command == Command::bench) {
    check_trace_output(config, sources);
    check_writable(config.trace, sources.name("trace"));
  }
  if (command == Command::plan) {
    require(sources, "plan.profile", "--profile");
    if (config.plan.policy == "full" && sources.given("plan.budget"))
      log::warning("{} has no effect on the policy 'full'", sources.name("plan.budget"));
    check_plan_output(config, sources);
  }
}

}  // namespace hydrant
