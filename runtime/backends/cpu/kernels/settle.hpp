// Scores and victims of a decode step.
#pragma once
#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cpu {

// Ops::settle. Work is spread over (row, KV head). Every segment's victim is written: -1 where
// nobody leaves.
void settle(ThreadPool& pool, Isa isa, const SettleArgs& args);

}  // namespace hydrant::cpu
