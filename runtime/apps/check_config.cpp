#include "runtime/apps/check_config.hpp"

#include <filesystem>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

void require(const Sources& sources, const char* path, const char* flag) {
  if (!sources.given(path)) fail(Fault::bad_config, "{}: is needed", flag);
}

// Exactly one of two keys.
void require_one(const Sources& sources, const char* a, const char* b) {
  if (sources.given(a) && sources.given(b))
    fail(Fault::bad_config, "{}: cannot stand beside {}", sources.name(a), sources.name(b));
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

// Rows must not go where they are read from. Special files (/dev/null) may be both.
void refuse_output_over_input(const RunConfig& config, const Sources& sources) {
  const std::pair<const char*, const std::string*> inputs[] = {
      {"prompts", &config.prompts}, {"input", &config.input}, {"perplexity", &config.perplexity}};
  for (const auto& [path, input] : inputs) {
    std::error_code absent;  // a file that is not there is named when it is opened
    if (!input->empty() && std::filesystem::is_regular_file(*input, absent) &&
        std::filesystem::equivalent(*input, config.output, absent))
      fail(Fault::bad_config, "{}: {} is also what {} names", sources.name("output"), config.output,
           sources.name(path));
  }
}

// Only a job of many rows can be gone on with.
bool can_resume(const RunConfig& config, Command command) {
  return command == Command::generate ? !config.prompt
                                      : command == Command::score && config.perplexity.empty();
}

// Hours of work may lie in it.
void refuse_existing_output(const RunConfig& config, const Sources& sources, Command command) {
  std::error_code absent;
  const bool resumes = can_resume(config, command);
  if ((config.resume && resumes) || config.overwrite ||
      !std::filesystem::is_regular_file(config.output, absent) ||
      std::filesystem::file_size(config.output, absent) == 0)
    return;
  fail(Fault::bad_config, "{}: {} is there and not empty; {}--overwrite replaces it",
       sources.name("output"), config.output, resumes ? "--resume goes on with it, " : "");
}

// What --resume cannot stand beside.
void exclude(const RunConfig& config, const Sources& sources, const char* path, bool given) {
  if (config.resume && given)
    fail(Fault::bad_config, "{}: cannot stand beside {}", sources.name("resume"),
         sources.name(path));
}

void check_output(const RunConfig& config, const Sources& sources, Command command) {
  if (command == Command::generate) exclude(config, sources, "prompt", config.prompt.has_value());
  if (command == Command::score) exclude(config, sources, "perplexity", !config.perplexity.empty());
  if (config.output.empty()) {
    if (config.resume && can_resume(config, command))
      fail(Fault::bad_config, "{}: needs --output", sources.name("resume"));
    if (config.overwrite)
      log::warning("{} has no effect without --output", sources.name("overwrite"));
    return;
  }
  refuse_output_over_input(config, sources);
  refuse_existing_output(config, sources, command);
}

// A configuration may be checked on another machine than the one that is to run it, but not by
// another build.
void check_device(const RunConfig& config, const Sources& sources, Command command) {
  if (config.device.empty()) return;
  std::string known;
  for (const Backend& b : backends()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", b.name);
    if (b.name != config.device) continue;
    if (b.usable()) return;
    if (command != Command::validate)
      fail(Fault::bad_config, "{}: this machine has no usable {} device", sources.name("device"),
           b.name);
    log::warning("{}: this machine has no usable {} device", sources.name("device"), b.name);
    return;
  }
  fail(Fault::bad_config, "{}: must be one of this build's backends ({}), not '{}'",
       sources.name("device"), known, config.device);
}

void check_cache(const RunConfig& config, const Sources& sources) {
  cache_choice(config.cache, sources);  // throws where it is none
  warn_of_sizes_set_aside(config.cache, sources);
}

// In one line: a file may well serve several commands.
void warn_of_keys_of_other_commands(const Sources& sources, Command command) {
  std::string unused;
  for (const Key& key : config_keys())
    if (sources.given(key.path) && !key.commands.has(command))
      unused += fmt::format("{}{}", unused.empty() ? "" : ", ",
                            unused.empty() ? sources.name(key.path) : key.path);
  if (!unused.empty()) log::warning("{}: no effect on {}", unused, name(command));
}

}  // namespace

void check_config(const RunConfig& config, const Sources& sources, Command command) {
  check_device(config, sources, command);
  exclude(config, sources, "overwrite", config.overwrite);
  if (command == Command::validate) return check_cache(config, sources);
  warn_of_keys_of_other_commands(sources, command);
  require(sources, "model", command == Command::inspect ? "MODEL" : "--model");
  if (command == Command::generate) check_generate(config, sources);
  if (command == Command::score) require_one(sources, "perplexity", "input");
  if (command == Command::score && config.perplexity.empty() && sources.given("context"))
    log::warning("{} has no effect without --perplexity", sources.name("context"));
  if (command == Command::tokenize) require(sources, "input", "--input");
  if (command == Command::generate || command == Command::score || command == Command::inspect)
    check_cache(config, sources);
  if (command == Command::generate || command == Command::score || command == Command::tokenize)
    check_output(config, sources, command);
}

}  // namespace hydrant
