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

// kCount f16 scales at `at` in each block. All bits of an exponent and one more carry into the bit
// above it.
template <size_t kCount>
bool scales_finite(std::span<const std::byte> row, size_t block, size_t at) {
  unsigned carried = 0;
  for (size_t i = at; i < row.size(); i += block) {
    uint16_t scales[kCount];
    std::memcpy(scales, row.data() + i, sizeof scales);
    for (const unsigned scale : scales) carried |= (scale & 0x7c00u) + 0x0400u;
  }
  return (carried & 0x8000u) == 0;
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
      return scales_finite<1>(row, block, 0);
    case DType::q4_1:  // scale and minimum
    case DType::q4_k:  // scale of the scales and of the minima
      return scales_finite<2>(row, block, 0);
    case DType::q6_k:  // behind codes and sub-scales
      return scales_finite<1>(row, block, block - 2);
    case DType::i32:
      break;
  }
  fail(Fault::internal, "weights of type {}", name(dtype));
}

}  // namespace hydrant
