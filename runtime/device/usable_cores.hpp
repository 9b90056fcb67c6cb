#pragma once

namespace hydrant {

// Cores this process may use: affinity mask, then the cgroup quota rounded down, at least 1.
int usable_cores();

}  // namespace hydrant
