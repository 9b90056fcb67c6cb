#include "runtime/base/half.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace hydrant;

TEST_CASE("every f16 and bf16 value survives the way to f32 and back") {
  for (uint32_t h = 0; h < 65536; h++) {
    const auto u = uint16_t(h);
    const float half = f16_to_f32(u), brain = bf16_to_f32(u);
    if (std::isnan(half))
      CHECK(std::isnan(f16_to_f32(f32_to_f16(half))));
    else if (f32_to_f16(half) != u)
      FAIL("f16 " << h);
    if (std::isnan(brain))
      CHECK(std::isnan(bf16_to_f32(f32_to_bf16(brain))));
    else if (f32_to_bf16(brain) != u)
      FAIL("bf16 " << h);
  }
}

TEST_CASE("f32 rounds to the nearest f16, ties to even") {
  // every midpoint between neighbours, and its neighbours in f32
  for (uint32_t h = 0; h < 0x7bff; h++) {
    const float low = f16_to_f32(uint16_t(h)), high = f16_to_f32(uint16_t(h + 1));
    const float middle = low + (high - low) / 2;
    const uint16_t even = uint16_t(h % 2 == 0 ? h : h + 1);
    if (f32_to_f16(middle) != even) FAIL("midpoint after " << h);
    if (f32_to_f16(std::nextafter(middle, 0.0f)) != h) FAIL("below the midpoint after " << h);
    if (f32_to_f16(std::nextafter(middle, 1e9f)) != h + 1) FAIL("above the midpoint after " << h);
  }
  CHECK(f32_to_f16(65519.0f) == 0x7bff);
  CHECK(f32_to_f16(65520.0f) == 0x7c00);
  CHECK(f32_to_f16(-std::numeric_limits<float>::infinity()) == 0xfc00);
}
