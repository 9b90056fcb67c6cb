// The subcommands, one file each. Each returns the exit code of a run that came to its end; errors
// are thrown.
#pragma once
#include "runtime/apps/run_config.hpp"

namespace hydrant {

int run_validate(const RunConfig& config, const Sources& sources);

}  // namespace hydrant
