// What a card's tensor cores make of prompts: their own head sizes, chunks, and numbers at the ends
// of f16.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "test/ops/attend_prompt_cases.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

PromptRun prompt_over(Home& home, int32_t length, float deviation = 2) {
  const HeadShape s = home.shape();
  home.put_random(uint32_t(s.head_dim), 0, length);
  return {home, length, normals(uint32_t(length), size_t(length * s.heads * s.head_dim), deviation),
          1 / std::sqrt(float(s.head_dim))};
}

}  // namespace

TEST_CASE("wide and odd heads equal double precision", "[devices]") {
  for (const int32_t d : {96, 256})
    for (const DType dtype : {DType::f16, DType::bf16})
      for (const DeviceChoice& choice : device_choices()) {
        if (choice.options.isa == "generic") continue;  // emulated: slow
        INFO(choice.backend << " " << choice.options.isa << " " << name(dtype) << " d " << d);
        Home home(dtype, {6, 2, d}, 80);
        const PromptRun prompt = prompt_over(home, 67);
        const auto r = prompt.run(choice, {67});
        check_out(prompt, r, 11);
        check_columns(prompt, r.columns);
      }
}

TEST_CASE("a prompt's bits do not depend on its chunks on any device", "[devices]") {
  for (const int32_t d : {24, 64, 256})
    for (const DType dtype : kKvTypes)
      for (const DeviceChoice& choice : device_choices()) {
        if (choice.backend == "cpu" && choice.options.isa == "generic") continue;
        INFO(choice.backend << " " << choice.options.isa << " " << name(dtype) << " d " << d);
        Home home(dtype, {6, 2, d}, 80);
        const PromptRun prompt = prompt_over(home, 71);
        const auto whole = prompt.run(choice, {71});
        for (const std::vector<int32_t>& chunks :
             {std::vector<int32_t>{1, 5, 33, 32}, std::vector<int32_t>{48, 23}}) {
          const auto r = prompt.run(choice, chunks);
          CHECK(same_bits(r.out, whole.out));
          CHECK(same_bits(r.lse, whole.lse));
          CHECK(same_bits(r.columns.sum, whole.columns.sum));
          CHECK(same_bits(r.columns.last, whole.columns.last));
        }
      }
}

TEST_CASE("a value that is no number reaches only queries that see it", "[devices]") {
  const int32_t length = 60, at = 37;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const DeviceChoice& choice : device_choices()) {
      if (choice.options.isa == "generic") continue;
      Home home(dtype, {2, 1, 64}, 64), broken(dtype, {2, 1, 64}, 64);
      const PromptRun clean = prompt_over(home, length);
      PromptRun prompt = prompt_over(broken, length);
      std::vector<float> key(64, 1.0f), value(64, 1.0f);
      home.put(0, 0, at, key.data(), value.data());
      value[5] = NAN, value[6] = std::numeric_limits<float>::infinity();
      broken.put(0, 0, at, key.data(), value.data());
      for (const std::vector<int32_t>& chunks :
           {std::vector<int32_t>{length}, std::vector<int32_t>{at, length - at}}) {
        INFO(choice.backend << " " << choice.options.isa << " " << name(dtype));
        const auto r = prompt.run(choice, chunks), expected = clean.run(choice, chunks);
        for (size_t i = 0; i < r.out.size(); i++) {
          const bool spoilt = i / 128 >= size_t(at) && (i % 64 == 5 || i % 64 == 6);
          INFO("position " << i / 128 << " component " << i % 64);
          if (spoilt ? std::isfinite(r.out[i]) : r.out[i] != expected.out[i]) FAIL("wrong");
        }
        CHECK(same_bits(r.lse, expected.lse));
      }
    }
}

TEST_CASE("queries beyond f16's numbers are attended like others", "[devices]") {
  const int32_t length = 45;
  for (const float size : {1e-8f, 1e6f}) {  // below the smallest f16, above the largest
    Home home(DType::f16, {4, 2, 64}, 48);
    for (int32_t slot = 0; slot < length; slot++)
      for (const int32_t head : {0, 1}) {
        std::vector<float> key = normals(uint32_t(slot * 2 + head), 64);
        const std::vector<float> value = key;
        for (float& x : key) x *= size > 1 ? 1e-5f : 1e4f;
        home.put(0, head, slot, key.data(), value.data());
      }
    const PromptRun prompt{home, length, normals(1, size_t(length) * 4 * 64, size), 0.25f};
    for (const DeviceChoice& choice : device_choices()) {
      if (choice.options.isa == "generic") continue;
      INFO(choice.backend << " " << choice.options.isa << " size " << size);
      const auto r = prompt.run(choice, {length});
      check_out(prompt, r, 5);
      check_columns(prompt, r.columns);
    }
  }
}
