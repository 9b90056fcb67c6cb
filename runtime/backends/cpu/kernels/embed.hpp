// Rows of an embedding table.
#pragma once
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cpu {

// Throws internal, naming the index, when one lies outside the table.
void embed(ThreadPool& pool, const EmbedArgs& args);

}  // namespace hydrant::cpu
