// The `cache` section -> what the policies understand.
#pragma once
#include "policies/budget.hpp"
#include "runtime/apps/run_config.hpp"
#include "runtime/base/dtype.hpp"

namespace hydrant {

// Throws bad_config naming the key that the policy does not use, or that it lacks. Sizes that a
// file gives to another policy than a flag has chosen are left out.
policy::Choice cache_choice(const CacheConfig& cache, const Sources& sources);
// In one line.
void warn_of_sizes_set_aside(const CacheConfig& cache, const Sources& sources);

// Of keys and values: what is given, else f32 for exact products and bf16 otherwise.
DType cache_dtype(const RunConfig& config);

}  // namespace hydrant
