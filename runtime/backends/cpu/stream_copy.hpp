// Copies of more than a core's caches hold.
#pragma once
#include <cstddef>

namespace hydrant::cpu {

// Like memcpy. Many bytes are written past the caches: that saves reading the lines that are
// overwritten, a third of what the copy moves, and leaves the caches to whoever computes beside it.
void stream_copy(void* to, const void* from, size_t bytes);

}  // namespace hydrant::cpu
