#pragma once
#include "runtime/apps/config_keys.hpp"
#include "runtime/apps/run_config.hpp"

namespace hydrant {

// Rules between keys, before anything is opened: what a command needs, what excludes what, which
// policy uses which size. One warning line for each given key that has no effect. Throws
// bad_config.
void check_config(const RunConfig& config, const Sources& sources, Command command);

}  // namespace hydrant
