// Host memory that no kernel reaches.
#pragma once
#include <string_view>

#include "runtime/device/device.hpp"

namespace hydrant {

// For what streams only copy from and to, and the host reads and writes. Pinned; where the system
// does not let so much be pinned, pageable, with one warning for all of the same `what`, that says
// what it costs. Throws out_of_memory naming `what` if it is too much for that, too.
Buffer allocate_for_copies(Device& device, size_t bytes, std::string_view what,
                           std::string_view cost = "copies wait for the host");

}  // namespace hydrant
