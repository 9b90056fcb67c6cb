#pragma once
#include "runtime/device/device.hpp"

namespace hydrant {

// Bytes per second that the device reads from its memory, the best of a few passes over a buffer
// that no cache holds: by its threads together if it computes in the host's, else by copies from
// there to there, which read and write.
double memory_bandwidth(Device& device);

}  // namespace hydrant
