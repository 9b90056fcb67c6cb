#include "runtime/base/error.hpp"
#include "test/support/backend_fixture.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("gather copies rows, repeated ones too", "[devices]") {
  constexpr int64_t kRows = 60, kWidth = 1000;
  Random random(1);
  const auto in = random.floats(kRows * kWidth);
  for (const int64_t count : {0, 1, 3, 90}) {
    std::vector<int32_t> indices;
    for (int64_t i = 0; i < count; i++) indices.push_back(int32_t(random.below(kRows)));
    for (const DeviceChoice& choice : device_choices(3)) {
      Bench bench(choice);
      const Tensor out = bench.make(DType::f32, {count, kWidth});
      bench.ops().gather(*bench.stream,
                         {bench.put(indices, {count}), bench.put(in, {kRows, kWidth}), out});
      std::vector<float> expected;
      for (const int32_t i : indices)
        expected.insert(expected.end(), in.begin() + i * kWidth, in.begin() + (i + 1) * kWidth);
      CHECK(same_bits(bench.get(out), expected));
    }
  }
}

TEST_CASE("an index outside of its table is refused when the work is done", "[devices]") {
  for (const DeviceChoice& choice : device_choices())
    for (const bool inline_work : {false, true})
      for (const int32_t bad : {-1, 2}) {
        INFO(choice.backend << " " << choice.options.isa);
        Bench bench(choice, inline_work);
        bench.ops().gather(*bench.stream, {bench.put(std::vector<int32_t>{0, bad}, {2}),
                                           bench.put(std::vector<float>{1, 2, 3, 4}, {2, 2}),
                                           bench.make(DType::f32, {2, 2})});
        CHECK_THROWS_WITH(bench.stream->synchronize(),
                          "gather: index 1 is " + std::to_string(bad) + ", of 2 rows");
      }
}

TEST_CASE("bad arguments throw at the call, and the stream goes on", "[devices]") {
  for (const DeviceChoice& choice : device_choices())
    for (const bool inline_work : {false, true}) {
      INFO(choice.backend << " " << choice.options.isa);
      Bench bench(choice, inline_work);
      const Tensor in = bench.put(std::vector<float>{1, 2}, {1, 2});
      CHECK_THROWS_AS(bench.ops().gate(*bench.stream, {Activation::silu, in, in}), Error);
      CHECK_NOTHROW(bench.stream->synchronize());
    }
}
