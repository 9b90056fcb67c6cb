// Small work stays on the calling thread.
#pragma once
#include <cstdint>

#include "runtime/backends/cpu/thread_pool.hpp"

namespace hydrant::cpu {

// Elements of simple vector work (about 5 us) from which a fork and a join of about 1 us pay, the
// more so as products of many rows find their input where it was made.
inline constexpr int64_t kForkElements = 16384;

// body(begin, end, member) over [0, count): in one piece when `elements` is small, else one piece
// per member.
template <class Body>
void split_large(ThreadPool& pool, int64_t count, int64_t elements, const Body& body) {
  if (elements < kForkElements || count < 2)
    body(int64_t{0}, count, 0);
  else
    pool.split(count, body);
}

}  // namespace hydrant::cpu
