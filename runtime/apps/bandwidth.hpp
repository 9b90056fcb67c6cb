#pragma once
#include "runtime/device/device.hpp"

namespace hydrant {

// Bytes per second that `threads` threads read from memory together: the best of a few passes over
// a buffer that no cache holds.
double memory_bandwidth(int threads);
// The same of the device's memory: by its threads if it computes in the host's, else by copies from
// there to there, which read and write.
double memory_bandwidth(Device& device);

}  // namespace hydrant
