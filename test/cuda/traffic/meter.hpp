// Counts the bytes that kernels read and write. The kernels are those that ThreadSanitizer would
// watch: each access calls a function of its, and here these functions count, in place of its
// library.
#pragma once
#include <cstddef>
#include <cstdint>

#include "test/support/backend_fixture.hpp"

namespace hydrant::test {

// asked: by all threads together. moved: each byte once for a block, however many of its threads
// ask for it and however often: they ask at the same time, or soon after, and find it in the cache
// beside them; what another block asks for comes from further away.
struct Bytes {
  size_t asked = 0, moved = 0;
};
struct Traffic {
  Bytes read, written;
};

// Counts from when it is made on; at most one at a time.
class Meter {
 public:
  Meter();
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // A range to count, before the work; read after it.
  const Traffic& of(const void* at, size_t bytes);
  const Traffic& of(const ConstTensor& t) {
    return of(t.data, size_t(row_bytes(t.dtype, t.shape.count())));
  }
};

}  // namespace hydrant::test
