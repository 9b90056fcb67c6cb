// How many cores the process may keep busy: the affinity mask, cut by the quotas of its cgroups.
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "runtime/device/usable_cores.hpp"

namespace hydrant {
namespace {

int cores_in_mask() {
  for (int cores = 1024; cores <= 1 << 20; cores *= 2) {  // the kernel refuses a mask too small
    cpu_set_t* set = CPU_ALLOC(cores);
    if (!set) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(cores);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return 1;
}

std::optional<double> quota_of(const std::string& folder) {
  std::string quota;
  double period = 0;
  std::ifstream unified(folder + "/cpu.max");  // cgroup 2: "max 100000" or "150000 100000"
  if (!(unified >> quota >> period)) {
    std::ifstream share(folder + "/cpu.cfs_quota_us"), length(folder + "/cpu.cfs_period_us");
    if (!(share >> quota) || !(length >> period)) return std::nullopt;
  }
  if (quota == "max" || quota.starts_with('-') || period <= 0) return std::nullopt;
  return std::strtod(quota.c_str(), nullptr) / period;
}

}  // namespace

int usable_cores() {
  int cores = cores_in_mask();
  const auto limit = [&](const std::string& folder) {
    if (const auto quota = quota_of(folder)) cores = std::min(cores, std::max(1, int(*quota)));
  };
  // The quota may be set on any group above the process, seen from inside a container or outside.
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t names = line.find(':'), path = line.find(':', names + 1);
    if (names == std::string::npos || path == std::string::npos) continue;
    const std::string controllers = line.substr(names + 1, path - names - 1);
    if (!controllers.empty() && ("," + controllers + ",").find(",cpu,") == std::string::npos)
      continue;
    const std::string root = "/sys/fs/cgroup" + (controllers.empty() ? "" : "/" + controllers);
    std::string group = line.substr(path + 1);
    while (!group.empty() && group != "/") {
      limit(root + group);
      group.erase(group.find_last_of('/'));
    }
    limit(root);
  }
  return std::max(1, cores);
}

}  // namespace hydrant
