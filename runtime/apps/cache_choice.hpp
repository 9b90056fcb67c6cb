// The `cache` section -> what the policies understand.
#pragma once
#include <span>

#include "policies/budget.hpp"
#include "runtime/apps/run_config.hpp"
#include "runtime/base/dtype.hpp"
#include "runtime/engine/generator.hpp"

namespace hydrant {

// Throws bad_config naming the key that the policy does not use, or that it lacks. Sizes that a
// file gives to another policy than a flag has chosen are left out.
policy::Choice cache_choice(const CacheConfig& cache, const Sources& sources);
// In one line.
void warn_of_sizes_set_aside(const CacheConfig& cache, const Sources& sources);

// In one line, when a row's budget leaves the policy fewer sinks than it keeps unasked. True when
// there is such a row.
bool warn_of_few_sinks(const policy::Choice& choice, std::span<const Request> rows);

Request with_full_cache(Request request);  // the same row, all of whose tokens stay

// Of keys and values: what is given, else f32 for exact products and the device's own otherwise.
DType cache_dtype(const RunConfig& config, const Device& device);

}  // namespace hydrant
