#include "runtime/backends/cpu/stream_copy.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

using hydrant::cpu::stream_copy;

TEST_CASE("copies of every size and alignment move their bytes and no others") {
  constexpr size_t many = size_t{1} << 20, room = many + 1024;
  std::vector<uint8_t> from(room), to(room);
  for (size_t i = 0; i < room; i++) from[i] = uint8_t(i * 167 + i / 251 + 1);
  const auto check = [&](size_t at, size_t source, size_t bytes) {
    CAPTURE(at, source, bytes);
    std::fill(to.begin(), to.end(), uint8_t{0});
    stream_copy(to.data() + at, from.data() + source, bytes);
    const auto begin = to.begin() + std::ptrdiff_t(at), end = begin + std::ptrdiff_t(bytes);
    REQUIRE(std::equal(begin, end, from.begin() + std::ptrdiff_t(source)));
    REQUIRE(std::all_of(to.begin(), begin, [](uint8_t b) { return b == 0; }));
    REQUIRE(std::all_of(end, to.end(), [](uint8_t b) { return b == 0; }));
  };
  for (const size_t at : {0, 1, 15, 16, 63, 64})
    for (const size_t source : {0, 7, 64})
      for (const size_t bytes : {size_t{0}, size_t{1}, size_t{255}, many - 1, many, many + 1,
                                 many + 63, many + 255, many + 256, many + 700})
        check(at, source, bytes);
}
