// The subcommands, one file each. The configuration has been checked; each returns the exit code of
// a run that came to its end, and throws what stopped it.
#pragma once
#include "runtime/apps/run_config.hpp"

namespace hydrant {

int run_generate(const RunConfig& config, const Sources& sources);
int run_score(const RunConfig& config, const Sources& sources);
int run_tokenize(const RunConfig& config, const Sources& sources);
int run_inspect(const RunConfig& config, const Sources& sources);
int run_bench(const RunConfig& config, const Sources& sources);
int run_validate(const RunConfig& config, const Sources& sources);
int run_profile(const RunConfig& config, const Sources& sources);
int run_plan(const RunConfig& config, const Sources& sources);

}  // namespace hydrant
