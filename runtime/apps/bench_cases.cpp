#include "runtime/apps/bench_cases.hpp"

#include <algorithm>

#include "policies/registry.hpp"
#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/input.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/engine/check_request.hpp"

namespace hydrant {
namespace {

// The cache section that a combination stands for. Sinks given for all go to those that have them.
CacheConfig cache_of(const RunConfig& config, const std::string& policy,
                     const std::string& budget) {
  CacheConfig cache = config.cache;
  cache.policy = policy;
  cache.budget = budget;
  cache.heavy.reset();
  cache.recent.reset();
  if (!policy::regions(policy::policy_named(policy).value()).sinks) cache.sinks.reset();
  return cache;
}

// What messages call the keys that the section stands for.
Sources names_of(const Sources& sources) {
  Sources names;
  names.add("cache.policy", sources.name("bench.policy"));
  names.add("cache.budget", sources.name("bench.budget"));
  names.add("cache.sinks", sources.name("cache.sinks"));
  return names;
}

BenchCase make_case(const RunConfig& config, const Sources& sources, const ModelSpec& spec,
                    const std::vector<std::vector<int32_t>>& prompts, const std::string& policy,
                    const std::string& budget, int32_t output) {
  const auto batch = int32_t(prompts.size());
  BenchCase c;
  c.policy = policy;
  c.budget = budget;
  c.batch = batch;
  c.prompt_len = int32_t(prompts.front().size());
  c.output_len = output;
  c.cache = cache_choice(cache_of(config, policy, budget), names_of(sources));
  c.shape = batch_shape(config.batch);
  c.shape.groups = std::min(config.batch.groups, batch);
  c.shape.rows_per_group = ceil_div(batch, c.shape.groups);
  for (const auto& prompt : prompts) {
    Request& request = c.requests.emplace_back();
    request.prompt = prompt;
    request.max_new_tokens = output;
    request.plans = policy::plan(c.cache, spec.layers, c.prompt_len, output);
    check_request(spec, request);
  }
  return c;
}

void check_length(const RunConfig& config, const Sources& sources, const ModelSpec& spec,
                  int32_t prompt, int32_t output) {
  if (config.cache.positions != "original") return;
  const int64_t positions = spec.max_positions;  // the last token is chosen but not fed
  if (prompt > positions)
    fail(Fault::bad_config, "{}: must be 1 to {}, the model's positions, not {}",
         sources.name("bench.prompt_len"), positions, prompt);
  if (output > positions - prompt + 1)
    fail(Fault::bad_config,
         "{}: must be 1 to {} after a prompt of {}, for the model's {} positions, not {}",
         sources.name("bench.output_len"), positions - prompt + 1, prompt, positions, output);
}

}  // namespace

std::vector<std::vector<int32_t>> cut_prompts(const std::vector<int32_t>& text,
                                              const std::vector<int32_t>& begin, int64_t length,
                                              int64_t count) {
  const int64_t own = std::max<int64_t>(length - int64_t(begin.size()), 1),
                room = int64_t(text.size()) - own;
  if (room < count - 1)
    fail(Fault::bad_input, "bench.text: its {} tokens are too few for {} different prompts of {}",
         text.size(), count, length);
  const int64_t step = count > 1 ? room / (count - 1) : 0;
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t r = 0; r < count; r++) {
    std::vector<int32_t>& prompt = prompts.emplace_back(begin);
    const auto from = text.begin() + r * step;
    prompt.insert(prompt.end(), from, from + own);
    prompt.resize(size_t(length));  // a prompt of one token is the BOS alone
  }
  return prompts;
}

MakePrompts text_prompts(const RunConfig& config, const text::Tokenizer& tokenizer) {
  const std::string& file = config.bench.text;
  std::string text(kBenchText);
  if (!file.empty()) {
    text = read_input(file);
    require_utf8(text, file);
  }
  return [ids = tokenizer.encode(text, /*add_special=*/false),
          begin = tokenizer.encode("", /*add_special=*/true)](int64_t length, int64_t count) {
    return cut_prompts(ids, begin, length, count);
  };
}

MakePrompts random_prompts(const ModelSpec& spec, uint64_t seed) {
  return [vocab = spec.vocab, seed](int64_t length, int64_t count) {
    std::vector<std::vector<int32_t>> prompts;
    for (int64_t row = 0; row < count; row++) {
      std::vector<int32_t>& prompt = prompts.emplace_back();
      for (int64_t i = 0; i < length; i++)
        prompt.push_back(int32_t(uniform(seed, uint64_t(row), uint64_t(i)) * vocab));
    }
    return prompts;
  };
}

std::vector<BenchCase> bench_cases(const RunConfig& config, const Sources& sources,
                                   const ModelSpec& spec, const MakePrompts& make_prompts) {
  const BenchConfig& b = config.bench;
  std::vector<BenchCase> one;  // of each placement
  for (const int32_t prompt : b.prompt_len)
    for (const int32_t output : b.output_len) {
      check_length(config, sources, spec, prompt, output);
      for (const int32_t batch : b.batch) {
        const auto prompts = make_prompts(prompt, batch);
        for (const std::string& policy : b.policy)
          for (const std::string& budget :
               policy == "full" ? std::vector<std::string>{""} : b.budget)
            one.push_back(make_case(config, sources, spec, prompts, policy, budget, output));
      }
    }
  for (const BenchCase& c : one)
    if (warn_of_few_sinks(c.cache, c.requests)) break;  // one line is enough
  std::vector<PlacementConfig> placements = b.placement;
  if (placements.empty()) placements.push_back(config.placement);
  std::vector<BenchCase> cases;
  for (const PlacementConfig& placement : placements)
    for (const BenchCase& c : one) cases.emplace_back(c).placement = placement;
  return cases;
}

}  // namespace hydrant
