// What `bench` runs: every combination of its lists.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "policies/budget.hpp"
#include "runtime/apps/assemble.hpp"

namespace hydrant {

struct BenchCase {
  std::string policy, budget;  // as asked; full has no budget
  int32_t batch = 0, prompt_len = 0, output_len = 0;
  policy::Choice cache;
  BatchShape shape;
  std::vector<Request> requests;  // [batch]
  int64_t slots() const { return requests.front().plans.front().slots.capacity(); }
};

// Throws bad_config for lengths beyond the model's limit and sizes that a policy cannot use,
// bad_input when the text is too short for that many different prompts.
std::vector<BenchCase> bench_cases(const RunConfig& config, const Sources& sources,
                                   const ModelSpec& spec, const text::Tokenizer& tokenizer);

// Prompt r of `count`: `length` tokens, after the BOS where the model has one, from a fixed place
// in the text that no other prompt begins at.
std::vector<std::vector<int32_t>> cut_prompts(const std::vector<int32_t>& text,
                                              const std::vector<int32_t>& begin, int64_t length,
                                              int64_t count);

// The text inside the program: a book in the public domain.
extern const std::string_view kBenchText;

}  // namespace hydrant
