#include <cmath>

#include "test/support/backend_fixture.hpp"
#include "test/support/near.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

struct Case {
  NormKind kind;
  int64_t rows, width;
  bool bias, in_place;
  float centre, epsilon;
};

struct Inputs {
  std::vector<float> in, gain, bias;
  explicit Inputs(const Case& c) {
    Random random(uint64_t(c.width) * 7 + uint64_t(c.rows));
    in = random.floats(c.rows * c.width, c.centre - 3, c.centre + 3);
    gain = random.floats(c.width, -2, 2);
    bias = random.floats(c.width, -2, 2);
  }
};

std::vector<float> run(Bench& bench, const Case& c, const Inputs& x, int64_t rows) {
  const std::vector<float> part(x.in.begin(), x.in.begin() + rows * c.width);
  const Tensor in = bench.put(part, {rows, c.width});
  const Tensor out = c.in_place ? in : bench.make(DType::f32, {rows, c.width});
  const Tensor gain = bench.put(x.gain, {c.width});
  ConstTensor bias;
  if (c.bias) bias = bench.put(x.bias, {c.width});
  bench.ops().normalize(*bench.stream, {c.kind, in, gain, bias, c.epsilon, out});
  return bench.get(out);
}

void check_row(const Case& c, const Inputs& x, int64_t row, const std::vector<float>& all) {
  const auto begin = row * c.width, end = begin + c.width;
  const std::vector<float> in(x.in.begin() + begin, x.in.begin() + end);
  const auto width = double(c.width);
  double sum = 0, size = 0, squares = 0;
  for (const float v : in) sum += v, size += std::abs(v);
  const double mean = c.kind == NormKind::layer ? sum / width : 0;
  for (const float v : in) squares += (v - mean) * (v - mean);
  const double scale = 1 / std::sqrt(squares / width + double(c.epsilon));
  // A sum over n values is a chain of at most 16 additions in a block, n / 256 over the blocks and
  // 4 over the lanes. The scale is off by half the sum's relative error and the roundings of a
  // difference and its square; the mean by the sum's error relative to the values' size.
  const double chain = (20 + width / 256) * kRound;
  const double shift =
      c.kind == NormKind::layer ? chain * size / width + kRound * std::abs(mean) : 0;
  INFO("row " << row);
  check_near({all.begin() + begin, all.begin() + end}, [&](size_t i) -> Expected {
    const double normal = (in[i] - mean) * scale, gain = x.gain[i];
    const double expected = normal * gain + (c.bias ? double(x.bias[i]) : 0.0);
    return {expected,
            std::abs(gain) * (std::abs(normal) * (chain / 2 + 6 * kRound) + shift * scale) +
                std::abs(expected) * kRound};
  });
}

}  // namespace

TEST_CASE("normalize agrees with double precision, the same bits everywhere", "[devices]") {
  for (const NormKind kind : {NormKind::layer, NormKind::rms})
    for (const Case& c :
         {Case{kind, 3, 1, true, false, 0, 1e-5f}, Case{kind, 2, 7, true, true, 0, 1e-5f},
          Case{kind, 5, 16, false, false, 0, 1e-5f}, Case{kind, 3, 100, true, true, 100, 1e-5f},
          Case{kind, 4, 576, false, true, 0, 1e-5f}, Case{kind, 2, 5120, true, false, -7, 1e-6f},
          Case{kind, 70, 640, true, false, 1, 0}}) {
      const Inputs x(c);
      INFO("width " << c.width << ", kind " << int(kind));
      same_everywhere([&](Bench& bench) {
        auto out = run(bench, c, x, c.rows);
        for (int64_t row = 0; row < c.rows; row++) check_row(c, x, row, out);
        return out;
      });
    }
}

TEST_CASE("normalize: a row alone gets the bits it has among others", "[devices]") {
  const Case c{NormKind::layer, 70, 640, true, false, 1, 1e-5f};  // large enough to fork
  const Inputs x(c);
  for (const DeviceChoice& choice : device_choices(3)) {
    Bench bench(choice);
    const auto all = run(bench, c, x, c.rows), one = run(bench, c, x, 1);
    CHECK(same_bits(one, std::vector<float>(all.begin(), all.begin() + c.width)));
  }
}

TEST_CASE("normalize passes a NaN on to its row and to no other", "[devices]") {
  Case c{NormKind::rms, 3, 40, false, false, 0, 1e-5f};
  Inputs x(c);
  x.in[40 + 39] = NAN;
  for (const DeviceChoice& choice : device_choices()) {
    Bench bench(choice);
    const auto out = run(bench, c, x, c.rows);
    for (size_t i = 0; i < out.size(); i++) CHECK(std::isnan(out[i]) == (i / 40 == 1));
  }
}
