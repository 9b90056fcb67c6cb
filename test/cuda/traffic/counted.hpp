// What tests of bytes that kernels move share.
#pragma once
#include <catch2/catch.hpp>

#include "test/cuda/traffic/meter.hpp"
#include "test/ops/upload.hpp"

namespace hydrant::test {

inline const DeviceChoice kDevice{"cuda", {}};

inline size_t bytes_of(const ConstTensor& t) { return size_t(row_bytes(t.dtype, t.shape.count())); }

// Each byte asked for once, and nothing else.
inline void check_once(const Bytes& bytes, size_t least) {
  CHECK(bytes.asked == least);
  CHECK(bytes.moved == least);
}

}  // namespace hydrant::test
