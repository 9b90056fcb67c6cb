// The emulator's own words of the device, beside plain arithmetic.
#include <catch2/catch.hpp>
#include <cstring>
#include <emu/device.hpp>
#include <random>

namespace {

int as_word(const int8_t (&bytes)[4]) {
  int word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

TEST_CASE("__dp4a is the dot product of four signed bytes and a sum") {
  std::mt19937 g(1);
  for (int i = 0; i < 10000; i++) {
    int8_t a[4], b[4];
    // the ends of the range more often than by chance
    const auto byte = [&] { return int8_t(g() % 4 ? int(g() % 256) - 128 : g() % 2 ? -128 : 127); };
    int expected = int(g() % 2000001) - 1000000;
    const int sum = expected;
    for (int j = 0; j < 4; j++) {
      a[j] = byte(), b[j] = byte();
      expected += int(a[j]) * int(b[j]);
    }
    if (__dp4a(as_word(a), as_word(b), sum) != expected)
      FAIL(as_word(a) << " . " << as_word(b) << " + " << sum << ": "
                      << __dp4a(as_word(a), as_word(b), sum) << ", should be " << expected);
  }
  CHECK(__dp4a(int(0x80ff7f01u), int(0x80017f80u), -5) == 128 * 128 - 1 + 127 * 127 - 128 - 5);
}
