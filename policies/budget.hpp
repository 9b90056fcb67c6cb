// From what a user asks for to the layout of each row: how many slots, and which region they form.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/policy.hpp"

namespace hydrant::policy {

inline constexpr int64_t kMaxSlots = int64_t{1} << 30;

// A number of slots that may depend on the row.
struct Amount {
  enum class Of : uint8_t { slots, length, prompt };  // length: prompt + max_new_tokens
  Of of = Of::slots;
  int64_t count = 0;  // slots, or millionths of the whole
};

// "512" slots, "20%" of prompt + max_new_tokens, "20%p" of the prompt; up to four decimals. nullopt
// for anything else, a share of 0 or above 100 % and a number outside 1 .. kMaxSlots included.
std::optional<Amount> parse_amount(std::string_view text);
std::string to_string(const Amount& amount);  // the inverse

// What is kept of one layer: regions, or a budget that the policy spreads over those regions that
// are not given. A share is rounded down, but leaves at least one slot beside the given regions.
struct Budget {
  std::optional<Amount> total{};
  std::optional<int64_t> sinks{}, heavy{}, recent{};
};

struct Choice {
  Id policy = Id::full;
  Positions positions = Positions::original;
  std::vector<Budget> layers{Budget{}};  // one per layer, or one for all of them
};

// "" when every row can be planned; else what is wrong, starting with the key: "budget", "sinks",
// "heavy" or "recent".
std::string problem(Id policy, const Budget& budget);

// The plan of a row. Needs problem() == "" and prompt + max_new_tokens in 1 .. kMaxSlots. Where all
// the row's tokens fit, its slots are its positions and it is never scored.
RowPlan plan(Id policy, Positions positions, const Budget& budget, int64_t prompt,
             int64_t max_new_tokens);
// The same for each layer. Choice::layers must have one entry or `layers`.
std::vector<RowPlan> plan(const Choice& choice, int32_t layers, int64_t prompt,
                          int64_t max_new_tokens);

}  // namespace hydrant::policy
