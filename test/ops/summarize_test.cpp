#include <catch2/catch.hpp>
#include <cmath>

#include "test/ops/attend_prompt_cases.hpp"

using namespace hydrant;
using namespace hydrant::cpu;
using namespace hydrant::test;

TEST_CASE("column sums equal double precision for every shape, type and path", "[devices]") {
  for (const int32_t d : {8, 24, 64, 80, 128})
    for (const int32_t group : {1, 2, 3, 4, 8})
      for (const DType dtype : kKvTypes) {
        const int32_t length = d == 64 && group == 3 ? 41 : 19;
        const HeadShape shape{group * 2, 2, d};
        Home home(dtype, shape, 48);
        home.put_random(1, 0, length);
        const PromptRun prompt{home, length, normals(2, size_t(length * group * 2 * d)),
                               1 / std::sqrt(float(d))};
        for (const DeviceChoice& choice : device_choices()) {
          INFO(choice.backend << " " << choice.options.isa << " " << name(dtype) << " d " << d
                              << " group " << group);
          check_columns(prompt, prompt.run(choice, {length}).columns);
        }
      }
}

TEST_CASE("a prompt of one token gives its key everything", "[devices]") {
  const HeadShape shape{6, 2, 64};
  Home home(DType::bf16, shape, 16);
  home.put_random(1, 0, 1);
  const PromptRun prompt{home, 1, normals(2, 6 * 64)};
  for (const DeviceChoice& choice : device_choices()) {
    const Columns c = prompt.run(choice, {1}).columns;
    CHECK(c.sum == std::vector<float>(2, 3.0f));
    CHECK(c.last == std::vector<float>(2, 3.0f));
  }
}

TEST_CASE("column sums over several key blocks: every query hands out exactly its heads") {
  const HeadShape shape{8, 2, 64};
  const int32_t length = 700;
  Home home(DType::bf16, shape, 704);
  home.put_random(1, 0, length);
  const PromptRun prompt{home, length, normals(2, size_t(length * 8 * 64), 2)};
  for (const Isa isa : usable_isas()) {
    if (isa == Isa::generic) continue;  // emulated: slow, and no other code than below
    const auto whole = prompt.run(isa, 2, {length});
    double sum = 0, last = 0;
    for (const float x : whole.columns.sum) sum += double(x);
    for (const float x : whole.columns.last) last += double(x);
    // each query's probabilities add up to 1 within the error of its lse: a bf16 logit is the same
    // number here and there, so only f32 sums of up to 700 terms remain, 700 * 2^-24 = 4e-5
    CHECK(std::fabs(sum / (8.0 * length) - 1) < 4e-5);
    CHECK(std::fabs(last / 8 - 1) < 4e-5);
    const auto chunked = prompt.run(isa, 3, {256, 1, 255, 100, 88});
    CHECK(same_bits(chunked.columns.sum, whole.columns.sum));
    CHECK(same_bits(chunked.columns.last, whole.columns.last));
  }
}

TEST_CASE("one-hot attention of huge logits gives whole numbers and exact zeros", "[devices]") {
  const HeadShape shape{2, 1, 8};
  const int32_t length = 40;
  Home home(DType::f32, shape, 48);
  const std::vector<float> value(8, 1.0f);
  std::vector<float> q;
  for (int32_t i = 0; i < length; i++) {  // key 5 beats key 0, which beats all others
    const std::vector<float> key(8, i == 5 ? 1e5f : i == 0 ? 5e4f : -float(i) * 1e3f);
    home.put(0, 0, i, key.data(), value.data());
    q.insert(q.end(), 16, 1e5f);
  }
  for (const DeviceChoice& choice : device_choices()) {
    const Columns c = PromptRun{home, length, q, 1}.run(choice, {7, 33}).columns;
    std::vector<float> sum(size_t(length), 0), last(size_t(length), 0);
    sum[0] = 2 * 5;
    sum[5] = 2 * 35;
    last[5] = 2;
    CHECK(c.sum == sum);
    CHECK(c.last == last);
  }
}
