#include "runtime/apps/cache_choice.hpp"

#include "policies/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

bool is_flag(const std::string& called) { return called.starts_with("--"); }

// A file's sizes were chosen for the file's policy: when a flag chooses one that has no use for
// them, they are set aside. Their paths.
std::vector<std::string> set_aside_sizes(CacheConfig& cache, const Sources& sources) {
  std::vector<std::string> aside;
  if (!sources.given("cache.policy") || !is_flag(sources.name("cache.policy"))) return aside;
  const policy::Regions has = policy::regions(policy::policy_named(cache.policy).value());
  const auto check = [&](const char* path, bool used, auto& value) {
    if (used || !sources.given(path) || is_flag(sources.name(path))) return;
    aside.push_back(path);
    value = {};
  };
  const bool any = has.sinks || has.heavy || has.recent;
  check("cache.heavy", has.heavy, cache.heavy);
  check("cache.recent", has.recent, cache.recent);
  check("cache.sinks", has.sinks, cache.sinks);
  check("cache.budget", any, cache.budget);
  check("cache.layer_budgets", any, cache.layer_budgets);
  return aside;
}

// `key` is where `total` stands.
policy::Budget budget_of(const CacheConfig& cache, policy::Id policy, const std::string& total,
                         const char* key, const Sources& sources) {
  policy::Budget budget{{}, cache.sinks, cache.heavy, cache.recent};
  if (!total.empty()) budget.total = policy::parse_amount(total);
  const std::string wrong = policy::problem(policy, budget);
  if (wrong.empty()) return budget;
  const size_t colon = wrong.find(':');
  const std::string path = wrong.substr(0, colon);
  fail(Fault::bad_config, "{}{}{}", sources.name(path == "budget" ? key : "cache." + path),
       wrong.substr(colon),
       sources.given("cache.policy")
           ? ""
           : fmt::format("; {} was not given, it may be one of {}", sources.name("cache.policy"),
                         policy::policy_names()));
}

}  // namespace

policy::Choice cache_choice(const CacheConfig& cache, const Sources& sources) {
  policy::Choice choice;
  choice.policy = policy::policy_named(cache.policy).value();
  choice.positions = policy::positions_named(cache.positions).value();
  CacheConfig sizes = cache;
  set_aside_sizes(sizes, sources);
  if (!sizes.layer_budgets.empty() && !sizes.budget.empty())
    fail(Fault::bad_config, "{}: cannot stand beside {}", sources.name("cache.layer_budgets"),
         sources.name("cache.budget"));
  choice.layers.clear();
  for (const std::string& total : sizes.layer_budgets)
    choice.layers.push_back(budget_of(sizes, choice.policy, total, "cache.layer_budgets", sources));
  if (choice.layers.empty())
    choice.layers.push_back(budget_of(sizes, choice.policy, sizes.budget, "cache.budget", sources));
  return choice;
}

void warn_of_sizes_set_aside(const CacheConfig& cache, const Sources& sources) {
  CacheConfig sizes = cache;
  const std::vector<std::string> aside = set_aside_sizes(sizes, sources);
  if (aside.empty()) return;
  log::warning(
      "{}{}: no effect on the policy '{}'", sources.name(aside.front()),
      aside.size() == 1 ? "" : fmt::format(", {}", fmt::join(aside.begin() + 1, aside.end(), ", ")),
      cache.policy);
}

bool warn_of_few_sinks(const policy::Choice& choice, std::span<const Request> rows) {
  const int32_t usual = policy::regions(choice.policy).usual_sinks;
  for (const Request& row : rows)
    for (size_t layer = 0; layer < row.plans.size(); layer++) {
      const policy::Budget& budget = choice.layers[choice.layers.size() == 1 ? 0 : layer];
      const policy::SlotLayout& slots = row.plans[layer].slots;
      const auto length = int64_t(row.prompt.size()) + row.max_new_tokens;
      if (budget.sinks || slots.sinks >= usual || slots.capacity() >= length) continue;
      log::warning("a budget of {} slots leaves the policy '{}' {} for the first tokens, not {}",
                   slots.capacity(), policy::name(choice.policy), slots.sinks, usual);
      return true;
    }
  return false;
}

Request with_full_cache(Request request) {
  for (policy::RowPlan& plan : request.plans)
    plan = {{int32_t(request.prompt.size()) + request.max_new_tokens, 0, 0},
            policy::Id::full,
            plan.positions,
            /*scored=*/false};
  return request;
}

DType cache_dtype(const RunConfig& config, const Device& device) {
  if (config.cache.dtype != "auto") return dtype_named(config.cache.dtype).value();
  return config.compute_dtype == "f32" ? DType::f32 : device.cache_type();
}

}  // namespace hydrant
