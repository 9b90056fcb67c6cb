// Which positions of a prompt one KV head keeps, and where they lie.
#pragma once
#include <cstdint>
#include <span>

#include "policies/policy.hpp"

namespace hydrant::cpu {

// position[slot] and score[slot] of the stored slots [0, min(length, capacity)): all of the prompt
// where it fits; else the first sinks, the last `recent` at slot_of(position), and the heavy best
// of the rest by the policy's score, ascending by position; among equals the higher position stays.
// sum and last [length] are the columns of the prompt's attention; null when the row is not scored.
void select_prompt(const policy::RowPlan& plan, int32_t length, const float* sum, const float* last,
                   int32_t* position, float* score);

}  // namespace hydrant::cpu
