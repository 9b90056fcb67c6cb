// From the joint projection to rotated queries and to keys and values in their runs.
#pragma once
#include <vector>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cpu {

// `scratch` grows to what the pool's members need to rotate and convert a run of keys in.
void split_decode(ThreadPool& pool, Isa isa, const SplitDecodeArgs& args,
                  std::vector<float>& scratch);
void split_prompt(ThreadPool& pool, Isa isa, const SplitPromptArgs& args,
                  std::vector<float>& scratch);

}  // namespace hydrant::cpu
