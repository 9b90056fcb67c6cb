#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "test/ops/attend_prompt_cases.hpp"

using namespace hydrant;
using namespace hydrant::cpu;
using namespace hydrant::test;

TEST_CASE("prompt attention equals double precision for every shape, type and path", "[devices]") {
  for (const int32_t d : {8, 24, 64, 80, 128})
    for (const int32_t group : {1, 2, 3, 4, 8})
      for (const DType dtype : kKvTypes)
        for (const int32_t length : {1, 2, 17, 61}) {
          const HeadShape shape{group * 2, 2, d};
          Home home(dtype, shape, 64);
          home.put_random(uint32_t(length), 0, length);
          PromptRun prompt{home, length,
                           normals(uint32_t(d + group), size_t(length * group * 2 * d)),
                           1 / std::sqrt(float(d))};
          for (const DeviceChoice& choice : device_choices()) {
            INFO(choice.backend << " " << choice.options.isa << " " << name(dtype) << " d " << d
                                << " group " << group << " length " << length);
            check_out(prompt, prompt.run(choice, {length}), 7);
          }
        }
}

TEST_CASE("prompts over several key blocks equal double precision", "[devices]") {
  for (const DType dtype : kKvTypes) {
    const HeadShape shape{6, 2, 64};
    Home home(dtype, shape, 640);
    home.put_random(5, 0, 600);
    PromptRun prompt{home, 600, normals(6, size_t(600 * 6 * 64), 3), 0.125f};
    for (const DeviceChoice& choice : device_choices()) {
      if (choice.options.isa == "generic" && dtype != DType::f32) continue;  // emulated: slow
      INFO(choice.backend << " " << choice.options.isa << " " << name(dtype));
      check_out(prompt, prompt.run(choice, {600}), 97);
    }
  }
}

TEST_CASE("a prompt's bits do not depend on its chunks or the threads") {
  for (const DType dtype : kKvTypes)
    for (const int32_t group : {1, 3, 4})
      for (const Isa isa : usable_isas()) {
        const HeadShape shape{group * 2, 2, 24};
        const int32_t length = isa == Isa::generic ? 70 : 270;
        Home home(dtype, shape, 304);
        home.put_random(7, 0, length);
        PromptRun prompt{home, length, normals(8, size_t(length * group * 2 * 24), 2), 0.2f};
        const auto whole = prompt.run(isa, 1, {length});
        REQUIRE(whole.columns.sum.size() == size_t(2 * length));
        // one token at a time with one thread only: hundreds of fork-joins of three are slow
        for (const auto& [chunk, threads] : std::vector<std::pair<int32_t, int>>{
                 {1, 1}, {7, 2}, {16, 3}, {64, 1}, {64, 3}, {length, 2}, {length, 3}}) {
          INFO(name(isa) << " " << name(dtype) << " group " << group << " chunk " << chunk
                         << " threads " << threads);
          const auto r = prompt.run(isa, threads, prompt.chunks(chunk));
          REQUIRE(same_bits(r.out, whole.out));
          REQUIRE(same_bits(r.lse, whole.lse));
          REQUIRE(same_bits(r.columns.sum, whole.columns.sum));
          REQUIRE(same_bits(r.columns.last, whole.columns.last));
        }
      }
}

TEST_CASE("a prompt's attention has the same bits on every path") {
  for (const DType dtype : kKvTypes)
    for (const int32_t group : {1, 3, 8})
      for (const int32_t d : {24, 80, 128}) {
        const HeadShape shape{group * 2, 2, d};
        Home home(dtype, shape, 80);
        home.put_random(9, 0, 70);
        PromptRun prompt{home, 70, normals(10, size_t(70 * group * 2 * d), 2), 0.2f};
        const auto first = prompt.run(usable_isas().front(), 1, {70});
        for (const Isa isa : usable_isas()) {
          INFO(name(isa) << " " << name(dtype) << " group " << group << " d " << d);
          const auto r = prompt.run(isa, 1, {70});
          REQUIRE(same_bits(r.out, first.out));
          REQUIRE(same_bits(r.lse, first.lse));
          REQUIRE(same_bits(r.columns.sum, first.columns.sum));
          REQUIRE(same_bits(r.columns.last, first.columns.last));
        }
      }
}

TEST_CASE("what comes later does not exist for a query, whatever its bits", "[devices]") {
  const int32_t length = 290;
  for (const DType dtype : kKvTypes)
    for (const DeviceChoice& choice : device_choices())
      for (const int32_t at : {3, 40, 255, 256, 270}) {
        const HeadShape shape{3, 1, 24};
        Home home(dtype, shape, 304), broken(dtype, shape, 304);
        home.put_random(7, 0, length);
        broken.put_random(7, 0, length);
        const std::vector<float> nan(24, NAN), inf(24, std::numeric_limits<float>::infinity());
        broken.put(0, 0, at, nan.data(), inf.data());
        const auto q = normals(8, size_t(length * 3 * 24));
        const auto clean = PromptRun{home, length, q}.run(choice, {length});
        const auto r = PromptRun{broken, length, q}.run(choice, {length});
        INFO(choice.backend << " " << choice.options.isa << " " << name(dtype) << " NaN at " << at);
        const auto before = [&](const std::vector<float>& all, size_t size) {
          return std::vector<float>(all.begin(), all.begin() + std::ptrdiff_t(size_t(at) * size));
        };
        CHECK(same_bits(before(r.out, 72), before(clean.out, 72)));
        CHECK(same_bits(before(r.lse, 3), before(clean.lse, 3)));
        for (size_t row = size_t(at) * 3; row < r.lse.size(); row++)
          if (!std::isnan(r.lse[row])) FAIL("row " << row << " does not see the NaN");
      }
}

TEST_CASE("prompt attention takes no more scratch than was foretold, whatever the length") {
  const HeadShape shape{6, 2, 64};
  Home home(DType::bf16, shape, 512);
  home.put_random(1, 0, 512);
  const PromptRun prompt{home, 512, normals(1, 512 * 384)};
  const auto r = prompt.run(usable_isas().back(), 2, {512});
  CHECK(r.attend_bytes <= attend_prompt_bytes(shape, 1, 512, 2));
  CHECK(r.attend_bytes > attend_prompt_bytes(shape, 1, 512, 2) * 99 / 100);
  CHECK(r.summarize_bytes == summarize_prompt_bytes(shape, 1, 512, 2));
  // a byte per token for the list of tiles, nothing that grows with its square
  CHECK(attend_prompt_bytes(shape, 1, 1 << 20, 2) < r.attend_bytes + (1 << 20));
}
