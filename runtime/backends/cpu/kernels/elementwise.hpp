// Operations over rows that no matrix or cache takes part in. A row's result depends on nothing but
// the row: not on threads, neighbours or instruction path.
#pragma once
#include <vector>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cpu {

// What a piece of a row of logits comes to.
struct LogitsPiece {
  float max;  // of the values that are not NaN; -inf when there is none
  float sum;  // of exp(value - max); NaN when a value is NaN or max is +inf
};

void normalize(ThreadPool& pool, Isa isa, const NormalizeArgs& args);
void gate(ThreadPool& pool, Isa isa, const GateArgs& args);
void gather(ThreadPool& pool, const GatherArgs& args);
void rotary_table(ThreadPool& pool, const RotaryTableArgs& args);
// `scratch` grows to the largest call.
void summarize_logits(ThreadPool& pool, Isa isa, const SummarizeLogitsArgs& args,
                      std::vector<LogitsPiece>& scratch);

}  // namespace hydrant::cpu
