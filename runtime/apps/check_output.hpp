// Where results may go: never over what is not hydrant's own.
#pragma once
#include "runtime/apps/config_keys.hpp"
#include "runtime/apps/run_config.hpp"

namespace hydrant {

// Throws bad_config naming the key and the file when an output is also an input, when it is there
// and neither --resume nor --overwrite says what to do with it, or when it would be replaced
// although it is no earlier result of the same kind.
void check_output(const RunConfig& config, const Sources& sources, Command command);
// The same of documents that replace earlier ones.
void check_bench_output(const RunConfig& config, const Sources& sources);
void check_profile_output(const RunConfig& config, const Sources& sources);
void check_plan_output(const RunConfig& config, const Sources& sources);
void check_trace_output(const RunConfig& config, const Sources& sources);

}  // namespace hydrant
