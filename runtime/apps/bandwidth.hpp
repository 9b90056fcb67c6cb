#pragma once

namespace hydrant {

// Bytes per second that `threads` threads read from memory together: the best of a few passes over
// a buffer that no cache holds.
double memory_bandwidth(int threads);

}  // namespace hydrant
