#include <cmath>

#include "test/support/backend_fixture.hpp"
#include "test/support/near.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("rotary_table holds cosines and sines, rounded once, far out too", "[devices]") {
  const std::vector<int32_t> places{0, 1, 2, 511, 8191, 131072, 1000000};
  std::vector<float> frequency;
  for (int i = 0; i < 32; i++) frequency.push_back(std::pow(10000.0f, -float(i) / 32));
  for (const size_t rows : {size_t{1}, places.size(), size_t{300}}) {
    std::vector<int32_t> positions;
    for (size_t i = 0; i < rows; i++) positions.push_back(places[i % places.size()]);
    const auto count = int64_t(frequency.size());
    same_everywhere([&](Bench& bench) {
      const Tensor out = bench.make(DType::f32, {int64_t(rows), count, 2});
      bench.ops().rotary_table(*bench.stream, {bench.put(positions, {int64_t(rows)}),
                                               bench.put(frequency, {count}), out});
      auto table = bench.get(out);
      check_near(table, [&](size_t i) -> Expected {
        // The product is rounded to double, so the angle is off by 1e6 * 2^-53 at most.
        const size_t row = i / 2 / frequency.size(), j = i / 2 % frequency.size();
        const long double angle = static_cast<long double>(positions[row]) * frequency[j];
        return {double(i % 2 == 0 ? std::cos(angle) : std::sin(angle)), kRound / 2 + 2e-10};
      });
      return table;
    });
  }
}
