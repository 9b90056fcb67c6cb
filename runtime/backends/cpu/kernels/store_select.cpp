#include "runtime/backends/cpu/kernels/store_select.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "policies/registry.hpp"

namespace hydrant::cpu {
namespace {

// Integers in the order of (score, position): a total order, with NaN somewhere at its ends.
uint64_t ordered(float score, int32_t position) {
  const uint32_t bits = std::bit_cast<uint32_t>(score);
  const uint32_t key = bits >> 31 ? ~bits : bits | 0x80000000u;
  return uint64_t{key} << 32 | uint32_t(position);
}

// The policy's score of every position; zeros when the row is not scored.
std::vector<float> prompt_scores(const policy::RowPlan& plan, int32_t length, const float* sum,
                                 const float* last) {
  std::vector<float> scores(size_t(length), 0.0f);
  if (plan.scored)
    policy::visit(plan.policy, [&](auto policy) {
      for (int32_t p = 0; p < length; p++)
        scores[size_t(p)] = policy.from_prompt({sum[p], last[p]});
    });
  return scores;
}

}  // namespace

void select_prompt(const policy::RowPlan& plan, int32_t length, const float* sum, const float* last,
                   int32_t* position, float* score) {
  const policy::SlotLayout& slots = plan.slots;
  const std::vector<float> scores = prompt_scores(plan, length, sum, last);
  const auto put = [&](int32_t slot, int32_t p) {
    position[slot] = p;
    score[slot] = scores[size_t(p)];
  };
  if (length <= slots.capacity()) {
    for (int32_t p = 0; p < length; p++) put(p, p);
    return;
  }
  for (int32_t p = 0; p < slots.sinks; p++) put(p, p);
  for (int32_t p = length - slots.recent; p < length; p++) put(slots.slot_of(p), p);

  std::vector<uint64_t> rest;
  rest.reserve(size_t(length));
  for (int32_t p = slots.sinks; p < length - slots.recent; p++)
    rest.push_back(ordered(scores[size_t(p)], p));
  const auto end_of_best = rest.begin() + slots.heavy;
  std::nth_element(rest.begin(), end_of_best, rest.end(), std::greater<>());
  const auto by_position = [](uint64_t a, uint64_t b) { return uint32_t(a) < uint32_t(b); };
  std::sort(rest.begin(), end_of_best, by_position);
  for (int32_t i = 0; i < slots.heavy; i++)
    put(slots.sinks + i, int32_t(uint32_t(rest[size_t(i)])));
}

}  // namespace hydrant::cpu
