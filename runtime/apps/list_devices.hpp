// What `hydrant inspect --devices` prints.
#pragma once
#include "runtime/apps/run_config.hpp"

namespace hydrant {

// Each backend of this build and each device that it finds, one line each, with why it cannot be
// used. Opens every one of them.
int list_devices(const RunConfig& config);

}  // namespace hydrant
