#include <algorithm>
#include <cmath>

#include "test/support/backend_fixture.hpp"
#include "test/support/near.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Summary {
  std::vector<int32_t> best;
  std::vector<float> lse;
};

Summary run(Bench& bench, const std::vector<float>& logits, int64_t rows) {
  const Tensor best = bench.make(DType::i32, {rows}), lse = bench.make(DType::f32, {rows});
  const auto vocab = int64_t(logits.size()) / rows;
  bench.ops().summarize_logits(*bench.stream, {bench.put(logits, {rows, vocab}), best, lse});
  return {bench.get<int32_t>(best), bench.get(lse)};
}

void check_row(const float* row, int64_t vocab, int32_t best, float lse) {
  const float* const top = std::max_element(row, row + vocab);  // the first of equals
  CHECK(best == top - row);
  double sum = 0;
  for (int64_t i = 0; i < vocab; i++) sum += std::exp(double(row[i]) - double(*top));
  // Pieces of 4096 are summed in chains of 16 + 16 + 4 additions, joined in double. exp is good to
  // 5 roundings; rounding its argument d = logit - max adds |d| exp(d) <= 0.37 of one each.
  const double expected = double(*top) + std::log(sum);
  CHECK(std::abs(double(lse) - expected) <= 42 * kRound + std::abs(expected) * kRound);
}

}  // namespace

TEST_CASE("summarize_logits finds the arg max and the log of the sum, the same bits everywhere",
          "[devices]") {
  for (const auto& [rows, vocab] : {std::pair<int64_t, int64_t>{1, 1},
                                    {2, 5},
                                    {3, 16},
                                    {1, 4096},
                                    {2, 4097},
                                    {1, 50272},
                                    {7, 9000}})
    for (const float range : {1.0f, 30.0f, 1e10f}) {
      const auto logits = Random(uint64_t(vocab)).floats(rows * vocab, -range, range);
      same_everywhere([&, rows = rows, vocab = vocab](Bench& bench) {
        const Summary s = run(bench, logits, rows);
        for (int64_t row = 0; row < rows; row++) {
          INFO("row " << row << " of " << vocab << " logits up to " << range);
          check_row(logits.data() + row * vocab, vocab, s.best[size_t(row)], s.lse[size_t(row)]);
          const Summary alone =
              run(bench, {logits.begin() + row * vocab, logits.begin() + (row + 1) * vocab}, 1);
          CHECK(same_bits(alone.lse, {s.lse[size_t(row)]}));
        }
        return s.lse;
      });
    }
}

TEST_CASE("summarize_logits: the lowest id among equals, in one piece and over several",
          "[devices]") {
  for (const auto& equals : {std::vector<size_t>{3, 4, 20}, {4095, 4096}, {17, 9001}, {8999, 8998}})
    for (const DeviceChoice& choice : device_choices(3)) {
      std::vector<float> logits(9002, -1);
      for (const size_t i : equals) logits[i] = 2;
      Bench bench(choice);
      CHECK(run(bench, logits, 1).best[0] ==
            int32_t(*std::min_element(equals.begin(), equals.end())));
    }
  Bench bench({"cpu", {}});
  CHECK(run(bench, std::vector<float>(9002, 0.5f), 1).best[0] == 0);
}

TEST_CASE("summarize_logits: -inf is a logit like others while one is finite", "[devices]") {
  for (const DeviceChoice& choice : device_choices()) {
    std::vector<float> logits(10000, -kInfinity);
    logits[7000] = 3;
    Bench bench(choice);
    const Summary s = run(bench, logits, 1);
    CHECK(s.best[0] == 7000);
    CHECK(s.lse[0] == 3);
  }
}

TEST_CASE("summarize_logits: a NaN or no finite maximum gives NaN for that row alone",
          "[devices]") {
  for (const DeviceChoice& choice : device_choices())
    for (const size_t at : {size_t{0}, size_t{1}, size_t{17}, size_t{4100}, size_t{4999}}) {
      std::vector<float> logits(6 * 5000, 1);
      logits[at] = NAN;
      logits[5000 + at] = kInfinity;
      std::fill_n(logits.begin() + 10000, 5000, -kInfinity);
      std::fill_n(logits.begin() + 15000, 5000, -kInfinity);
      logits[15000 + at] = NAN;
      std::fill_n(logits.begin() + 20000, 5000, NAN);
      Bench bench(choice);
      const Summary s = run(bench, logits, 6);
      for (size_t row = 0; row < 6; row++) {
        INFO("row " << row << ", odd value at " << at << ", " << choice.options.isa);
        CHECK(std::isnan(s.lse[row]) == (row != 5));
        CHECK((s.best[row] >= 0 && s.best[row] < 5000));
      }
    }
}
