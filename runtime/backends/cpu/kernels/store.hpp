// Putting a step's and a prompt's keys and values where they stay.
#pragma once
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cpu {

// Ops::store_decode. Victims come from `from`.
void store_decode(ThreadPool& pool, const StoreDecodeArgs& args);

// Ops::store_prompt. The runs of prompt.kv and prompt.raw have the dtype of the home.
void store_prompt(ThreadPool& pool, const StorePromptArgs& args);

}  // namespace hydrant::cpu
