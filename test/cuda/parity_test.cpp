// The card beside the CPU, token by token: log-probabilities lie as close as f32 lets them, and the
// same positions are kept wherever scores differ by more than kScoreGap.
#include <catch2/catch.hpp>
#include <limits>

#include "test/end_to_end/run_job.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;
using policy::Id;

namespace {

constexpr int32_t kTokens = 12;

std::vector<int32_t> random_ids(Random& random, int32_t vocab, int64_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = int32_t(random.below(vocab));
  return ids;
}

// The closest that any eviction of the row came to going the other way, by the definition.
double closest_eviction(const TinyModel& model, const NaivePolicy& policy, const Request& r,
                        std::vector<std::vector<std::vector<int32_t>>>& kept) {
  NaiveSequence naive(model, policy);
  naive.forward(r.prompt);
  double closest = naive.eviction_gap();
  for (size_t t = 0; t + 1 < r.forced.size(); t++) {
    naive.forward({&r.forced[t], 1});
    closest = std::min(closest, naive.eviction_gap());
  }
  kept = naive.kept();
  return closest;
}

}  // namespace

TEST_CASE("the card keeps what the CPU keeps where scores differ, for every policy and family",
          "[devices]") {
  Random random(61);
  size_t rows_compared = 0, rows_all = 0;
  for (const std::string& kind : tiny_kinds()) {
    const TinyModel model = tiny_model(kind, 9);
    const auto last =
        model.spec.block.rotary.dims > 0 ? policy::Positions::cache : policy::Positions::original;
    const std::vector<NaivePolicy> policies{
        {Id::full, {}},        {Id::local, {0, 0, 9}},       {Id::sinks, {2, 0, 7}},
        {Id::h2o, {0, 5, 4}},  {Id::h2o_promote, {0, 6, 5}}, {Id::tova, {0, 9, 1}},
        {Id::h2o, {1, 12, 0}}, {Id::h2o, {0, 8, 8}, last}};
    std::vector<Request> rows;
    for (const NaivePolicy& p : policies) {
      rows.push_back(request_of(
          model.spec, random_ids(random, model.spec.vocab, 20 + random.below(20)), kTokens, p));
      rows.back().forced = random_ids(random, model.spec.vocab, kTokens);
      rows.back().report_kept = true;
    }
    Engine card(model), cpu(model, open_device("cpu", {1, ""}));
    const BatchShape shape{4, 2, 16, 100};
    const auto found = run_all(card.generator(shape), rows),
               expected = run_all(cpu.generator(shape), rows);
    for (size_t row = 0; row < rows.size(); row++) {
      CAPTURE(kind, row, policy::name(policies[row].id));
      std::vector<std::vector<std::vector<int32_t>>> kept;
      const bool close = closest_eviction(model, policies[row], rows[row], kept) < kScoreGap;
      rows_all++;
      if (close) continue;
      rows_compared++;
      CHECK(found[row].kept == expected[row].kept);
      CHECK(found[row].kept == kept);
      CHECK(same_result(found[row], expected[row]));
    }
  }
  CAPTURE(rows_compared, rows_all);
  CHECK(rows_compared * 10 >= rows_all * 9);
}
