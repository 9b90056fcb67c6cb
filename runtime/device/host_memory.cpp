#include "runtime/device/host_memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// The number behind `key` in a file of lines "key number"; `otherwise` when there is none.
size_t number_after(const std::string& file, std::string_view key, size_t otherwise) {
  std::ifstream in(file);
  std::string word;
  size_t number = 0;
  while (in >> word)
    if (word == key) return in >> number ? number : otherwise;
  return otherwise;
}

// The number that a file starts with; `otherwise` when it does not ("max").
size_t number_in(const std::string& file, size_t otherwise) {
  std::ifstream in(file);
  size_t number = 0;
  return in >> number ? number : otherwise;
}

// What one cgroup leaves, its file pages counted as free.
size_t left_in_group(const std::string& folder) {
  const bool unified = std::ifstream(folder + "/memory.max").good();  // cgroup 2, else 1
  const size_t limit =
      number_in(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"), kNoLimit);
  if (limit == kNoLimit) return kNoLimit;
  const size_t used =
      number_in(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"), 0);
  const std::string statistics = folder + "/memory.stat";
  const std::string_view prefix = unified ? "" : "total_";
  size_t files = 0;
  for (const auto key : {"inactive_file", "active_file"})
    files += number_after(statistics, std::string(prefix) + key, 0);
  return limit - std::min(limit, used - std::min(used, files));
}

// Bytes of this process: mapped, and resident in pages that are no file's.
struct ProcessSize {
  size_t mapped, resident;
};
ProcessSize process_size() {
  std::ifstream in("/proc/self/statm");
  size_t size = 0, resident = 0, shared = 0;
  in >> size >> resident >> shared;
  const auto page = size_t(sysconf(_SC_PAGESIZE));
  return {size * page, (resident - std::min(resident, shared)) * page};
}

// What `ulimit -v` allows.
size_t address_space() {
  struct rlimit limit {};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? limit.rlim_cur : kNoLimit;
}

size_t minus(size_t a, size_t b) { return a - std::min(a, b); }

}  // namespace

size_t available_memory(const std::string& root) {
  const size_t kib = number_after(root + "/proc/meminfo", "MemAvailable:", kNoLimit / 1024);
  size_t available = kib * 1024;
  // A limit may be set on any group above the process, seen from inside a container or outside.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/a/b" or "0::/a/b"
    const size_t names = line.find(':'), path = line.find(':', names + 1);
    if (names == std::string::npos || path == std::string::npos) continue;
    const std::string controller = line.substr(names + 1, path - names - 1);
    if (!controller.empty() && controller != "memory") continue;
    const std::string top = root + "/sys/fs/cgroup" + (controller.empty() ? "" : "/memory");
    std::string group = line.substr(path + 1);
    while (group.size() > 1) {
      available = std::min(available, left_in_group(top + group));
      group.erase(group.find_last_of('/'));
    }
    available = std::min(available, left_in_group(top));
  }
  return available;
}

size_t HostMemory::available() const {
  const ProcessSize process = process_size();
  const size_t unused = minus(promised_->load(), process.resident);
  return std::min(minus(available_memory(), unused), minus(address_space(), process.mapped));
}

Buffer HostMemory::allocate(Memory memory, size_t bytes, std::string_view what) {
  if (bytes == 0) return {};
  if (bytes >= kHugePage / 2) {  // less is never hopeless, and asking costs some 50 us
    const size_t left = available();
    if (bytes > left)
      fail(Fault::out_of_memory, "{}: {} bytes wanted, {} available", what, bytes, left);
  }
  const bool large = bytes >= kHugePage;
  const size_t mapped = bytes + (large ? kHugePage : 0);
  void* const at =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    fail(Fault::out_of_memory, "{}: {} bytes wanted, the system refused, with {} available", what,
         bytes, available_memory());
  auto* begin = static_cast<std::byte*>(at);
  if (large) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    const size_t head = align_up(reinterpret_cast<uintptr_t>(begin), kHugePage) -
                        reinterpret_cast<uintptr_t>(begin);
    const size_t used = align_up(bytes, page);
    if (head > 0) munmap(begin, head);
    begin += head;
    if (mapped - head > used) munmap(begin + used, mapped - head - used);
    madvise(begin, used, MADV_HUGEPAGE);  // a kernel without them serves small ones
  }
  promised_->fetch_add(bytes);
  return {begin, bytes, memory, [promised = promised_](void* data, size_t size) {
            munmap(data, size);
            promised->fetch_sub(size);
          }};
}

}  // namespace hydrant
