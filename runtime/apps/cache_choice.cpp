#include "runtime/apps/cache_choice.hpp"

#include "policies/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

bool is_flag(const std::string& called) { return called.starts_with("--"); }

// A file's sizes were chosen for the file's policy.
policy::Budget sizes(CacheConfig cache, policy::Id policy, const Sources& sources) {
  const policy::Regions has = policy::regions(policy);
  const bool overridden = is_flag(sources.name("cache.policy"));
  const auto drop = [&](const char* path, bool used, auto& value) {
    if (used || !overridden || !sources.given(path) || is_flag(sources.name(path))) return;
    log::warning("{} has no effect on the policy '{}'", sources.name(path), cache.policy);
    value = {};
  };
  drop("cache.heavy", has.heavy, cache.heavy);
  drop("cache.recent", has.recent, cache.recent);
  drop("cache.sinks", has.sinks, cache.sinks);
  drop("cache.budget", has.sinks || has.heavy || has.recent, cache.budget);

  policy::Budget budget{{}, cache.sinks, cache.heavy, cache.recent};
  if (!cache.budget.empty()) budget.total = policy::parse_amount(cache.budget);
  return budget;
}

}  // namespace

policy::Choice cache_choice(const CacheConfig& cache, const Sources& sources) {
  policy::Choice choice;
  choice.policy = policy::policy_named(cache.policy).value();
  choice.positions = policy::positions_named(cache.positions).value();
  choice.layers = {sizes(cache, choice.policy, sources)};
  const std::string wrong = policy::problem(choice.policy, choice.layers.front());
  if (!wrong.empty()) {
    const size_t colon = wrong.find(':');
    fail(Fault::bad_config, "{}{}", sources.name("cache." + wrong.substr(0, colon)),
         wrong.substr(colon));
  }
  return choice;
}

DType cache_dtype(const RunConfig& config) {
  if (config.cache.dtype != "auto") return dtype_named(config.cache.dtype).value();
  return config.compute_dtype == "f32" ? DType::f32 : DType::bf16;
}

}  // namespace hydrant
