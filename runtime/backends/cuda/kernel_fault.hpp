// How a kernel says that it was given nonsense: it leaves the first such finding where the host
// looks for it at the stream's next synchronize, and does without the value.
#pragma once
#include <cstdint>

namespace hydrant::cuda {

enum class FaultKind : int32_t {
  none,
  gather_index,
  embedding_row,
  victim,
  rank,
  position,
  positions
};

struct KernelFault {
  int32_t kind = 0;  // a FaultKind; first, for it is set atomically
  int32_t index = 0;
  int64_t found = 0, limit = 0;
};

// Throws internal if a fault was left, in the words that all backends use.
void check(const KernelFault& fault);

}  // namespace hydrant::cuda
