// Jobs whose cache is offloaded, over tiny models that stay on the device.
#pragma once
#include <vector>

#include "offload/offloaded_caches.hpp"
#include "test/end_to_end/run_job.hpp"

namespace hydrant::test {

// Rows of different lengths, each with a prompt of its own; any eight that follow each other have
// every policy.
std::vector<Request> cache_job(const ModelSpec& spec, int rows, uint64_t seed);

std::vector<Completion> run_with_caches(Engine& engine, const std::vector<Request>& rows,
                                        const BatchShape& shape, DType kv, CacheHomes& homes);

}  // namespace hydrant::test
