// What `bench` runs: every combination of its lists.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "policies/budget.hpp"
#include "runtime/apps/assemble.hpp"

namespace hydrant {

struct BenchCase {
  PlacementConfig placement;
  std::string policy, budget;  // as asked; full has no budget
  int32_t batch = 0, prompt_len = 0, output_len = 0;
  policy::Choice cache;
  BatchShape shape;
  std::vector<Request> requests;  // [batch]
  int64_t slots() const { return requests.front().plans.front().slots.capacity(); }
};

// `count` different prompts of `length` tokens.
using MakePrompts = std::function<std::vector<std::vector<int32_t>>(int64_t length, int64_t count)>;
// Out of the text that the configuration names, or of the program's own. They throw bad_input when
// it is too short for that many.
MakePrompts text_prompts(const RunConfig& config, const text::Tokenizer& tokenizer);
// Random ids, for weights that mean nothing either.
MakePrompts random_prompts(const ModelSpec& spec, uint64_t seed);

// Throws bad_config for lengths beyond the model's limit and sizes that a policy cannot use.
std::vector<BenchCase> bench_cases(const RunConfig& config, const Sources& sources,
                                   const ModelSpec& spec, const MakePrompts& make_prompts);

// Prompt r of `count`: `length` tokens, after the BOS where the model has one, from a fixed place
// in the text that no other prompt begins at.
std::vector<std::vector<int32_t>> cut_prompts(const std::vector<int32_t>& text,
                                              const std::vector<int32_t>& begin, int64_t length,
                                              int64_t count);

// The text inside the program: a book in the public domain.
extern const std::string_view kBenchText;

}  // namespace hydrant
