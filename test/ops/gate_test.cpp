#include <cmath>

#include "test/support/backend_fixture.hpp"
#include "test/support/near.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

constexpr Activation kKinds[] = {Activation::none, Activation::relu, Activation::silu,
                                 Activation::gelu, Activation::gelu_tanh};

double reference(Activation kind, double x) {
  switch (kind) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return NAN;
}

// What the f32 evaluation may be off by, as a multiple of |x|. exp is good to 5 roundings. silu
// adds a sum and a quotient. gelu_tanh has an argument good to 5 roundings of |2u|, and
// |2u| sigmoid(-|2u|) stays below 0.28. gelu's distribution function is an approximation of 1e-7
// (erf's 1.5e-7, halved) evaluated with roundings of values below 1.
double tolerance(Activation kind) {
  switch (kind) {
    case Activation::none:
    case Activation::relu:
      return 0;
    case Activation::silu:
      return 8 * kRound;
    case Activation::gelu:
      return 1e-7 + 6 * kRound;
    case Activation::gelu_tanh:
      return 10 * kRound;
  }
  return 0;
}

std::vector<float> run(Bench& bench, Activation kind, const std::vector<float>& in, int64_t rows) {
  const int64_t width = int64_t(in.size()) / rows / 2;
  const Tensor out = bench.make(DType::f32, {rows, width});
  bench.ops().gate(*bench.stream, {kind, bench.put(in, {rows, 2 * width}), out});
  return bench.get(out);
}

}  // namespace

TEST_CASE("gate agrees with double precision, the same bits everywhere", "[devices]") {
  for (const Activation kind : kKinds)
    for (const auto& [rows, width] :
         {std::pair<int64_t, int64_t>{3, 5}, {2, 16}, {5, 100}, {40, 900}}) {
      const auto in = Random(uint64_t(width)).floats(rows * width * 2, -8, 8);
      same_everywhere([&, rows = rows, width = width](Bench& bench) {
        auto out = run(bench, kind, in, rows);
        INFO("kind " << int(kind) << ", width " << width);
        check_near(out, [&](size_t i) -> Expected {
          const size_t at = i / size_t(width) * 2 * size_t(width) + i % size_t(width);
          const double x = in[at], up = in[at + size_t(width)], gated = reference(kind, x) * up;
          return {gated, std::abs(x * up) * tolerance(kind) + std::abs(gated) * kRound};
        });
        return out;
      });
    }
}

TEST_CASE("gate: large values and NaN", "[devices]") {
  const std::vector<float> in{1e30f, -1e30f, 200, -200, NAN, 0, 1, 1, 1, 1, 1, 1};
  for (const Activation kind :
       {Activation::relu, Activation::silu, Activation::gelu, Activation::gelu_tanh})
    for (const DeviceChoice& choice : device_choices()) {
      Bench bench(choice);
      const auto out = run(bench, kind, in, 1);
      INFO("kind " << int(kind) << " on " << choice.options.isa);
      CHECK(out[0] == 1e30f);
      CHECK(out[1] == 0);
      CHECK(out[2] == 200);
      CHECK(out[3] == 0);
      CHECK(std::isnan(out[4]));
      CHECK(out[5] == 0);
    }
}
