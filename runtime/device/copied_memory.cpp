#include "runtime/device/copied_memory.hpp"

#include <mutex>
#include <set>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// Several threads may ask for the same.
bool is_new(std::string_view what) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> said;
  const std::lock_guard lock(mutex);
  return said.emplace(what).second;
}

}  // namespace

Buffer allocate_for_copies(Device& device, size_t bytes, std::string_view what,
                           std::string_view cost) {
  try {
    return device.allocate(Memory::pinned, bytes, what);
  } catch (const Error& e) {
    if (e.fault() != Fault::out_of_memory) throw;
    Buffer pageable = device.allocate(Memory::pageable, bytes, what);
    if (is_new(what)) log::warning("{}; pageable memory takes its place: {}", e.what(), cost);
    return pageable;
  }
}

}  // namespace hydrant
