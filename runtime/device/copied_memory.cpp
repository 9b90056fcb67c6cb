#include "runtime/device/copied_memory.hpp"

#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {

Buffer allocate_for_copies(Device& device, size_t bytes, std::string_view what) {
  try {
    return device.allocate(Memory::pinned, bytes, what);
  } catch (const Error& e) {
    if (e.fault() != Fault::out_of_memory) throw;
    Buffer pageable = device.allocate(Memory::pageable, bytes, what);
    log::warning("{}; pageable memory takes its place, and copies wait for the host", e.what());
    return pageable;
  }
}

}  // namespace hydrant
