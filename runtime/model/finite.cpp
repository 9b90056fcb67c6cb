#include "runtime/model/finite.hpp"

#include <cstring>

#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

// A float is not finite when all bits of its exponent are set. Written without an exit so that it
// becomes vector code.
template <class Bits, Bits kExponent>
bool plain_finite(std::span<const std::byte> row) {
  Bits bad = 0;
  for (size_t i = 0; i < row.size(); i += sizeof(Bits)) {
    Bits value;
    std::memcpy(&value, row.data() + i, sizeof value);
    bad = Bits(bad | Bits((value & kExponent) == kExponent));
  }
  return bad == 0;
}

// `count` f16 scales at `at` in each block.
bool scales_finite(std::span<const std::byte> row, size_t block, size_t at, size_t count) {
  for (size_t i = at; i < row.size(); i += block)
    if (!plain_finite<uint16_t, 0x7c00>(row.subspan(i, count * 2))) return false;
  return true;
}

}  // namespace

bool all_finite(DType dtype, std::span<const std::byte> row) {
  const auto block = size_t(block_bytes(dtype));
  switch (dtype) {
    case DType::f32:
      return plain_finite<uint32_t, 0x7f800000>(row);
    case DType::f16:
      return plain_finite<uint16_t, 0x7c00>(row);
    case DType::bf16:
      return plain_finite<uint16_t, 0x7f80>(row);
    case DType::q8_0:
    case DType::q4_0:
      return scales_finite(row, block, 0, 1);
    case DType::q4_1:  // scale and minimum
    case DType::q4_k:  // scale of the scales and of the minima
      return scales_finite(row, block, 0, 2);
    case DType::q6_k:  // behind codes and sub-scales
      return scales_finite(row, block, block - 2, 1);
    case DType::i32:
      break;
  }
  fail(Fault::internal, "weights of type {}", name(dtype));
}

}  // namespace hydrant
