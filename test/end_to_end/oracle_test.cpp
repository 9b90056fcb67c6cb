// The runtime against the definition: tokens' log-probabilities and kept positions of every policy
// and family, for ragged batches in chunks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "policies/registry.hpp"
#include "test/end_to_end/run_job.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;
using policy::Id;
using policy::Positions;

namespace {

// An emulated device takes minutes over what a processor does in a second.
constexpr bool kEmulated = !test_backend().empty();
constexpr size_t kEvery = kEmulated ? 5 : 1;

const std::vector<NaivePolicy>& policies() {
  static const std::vector<NaivePolicy> all = [] {
    std::vector<NaivePolicy> list;
    for (const Positions positions : {Positions::original, Positions::cache})
      for (const NaivePolicy& p : std::vector<NaivePolicy>{{Id::full, {}},
                                                           {Id::local, {0, 0, 9}},
                                                           {Id::local, {0, 0, 1}},
                                                           {Id::sinks, {2, 0, 7}},
                                                           {Id::h2o, {0, 5, 4}},
                                                           {Id::h2o, {0, 6, 0}},
                                                           {Id::h2o, {2, 1, 1}},
                                                           {Id::h2o, {1, 20, 12}},
                                                           {Id::h2o_promote, {0, 5, 4}},
                                                           {Id::h2o_promote, {0, 4, 0}},
                                                           {Id::h2o_promote, {0, 0, 5}},
                                                           {Id::tova, {0, 8, 1}},
                                                           {Id::tova, {3, 4, 2}}})
        list.push_back({p.id, p.budget, positions});
    return list;
  }();
  return all;
}

bool fits(const NaivePolicy& p, const ModelSpec& spec) {
  return p.positions == Positions::original || spec.block.rotary.dims > 0;
}

// For one family: everything; on an emulated device each policy once, with another budget and other
// positions than in the other families, so that each policy meets each family.
std::vector<NaivePolicy> policies_for(const ModelSpec& spec, size_t family) {
  constexpr size_t kWhich[] = {0, 1, 3, 4, 2};
  std::vector<NaivePolicy> chosen;
  for (const Id id : {Id::full, Id::local, Id::sinks, Id::h2o, Id::h2o_promote, Id::tova}) {
    std::vector<NaivePolicy> all;
    for (const NaivePolicy& p : policies())
      if (p.id == id && fits(p, spec)) all.push_back(p);
    if (kEmulated) all = {all[kWhich[family] % all.size()]};
    chosen.insert(chosen.end(), all.begin(), all.end());
  }
  return chosen;
}

std::vector<int32_t> random_prompt(Random& random, int32_t vocab, int64_t length) {
  std::vector<int32_t> ids(static_cast<size_t>(length));
  for (int32_t& id : ids) id = int32_t(random.below(vocab));
  return ids;
}

// Feeds the definition what the runtime chose. Returns how many tokens could be compared.
size_t compare(const TinyModel& model, const NaivePolicy& policy, const Request& request,
               const Completion& got) {
  REQUIRE(got.finish == Finish::length);
  REQUIRE(got.tokens.size() == size_t(request.max_new_tokens));
  NaiveSequence naive(model, policy);
  std::vector<int32_t> feed = request.prompt;
  for (size_t t = 0; t < got.tokens.size(); t++) {
    CAPTURE(t);
    const std::vector<double> logits = naive.forward(feed);
    const auto best = std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double l : logits) sum += std::exp(l - *best);
    const auto id = size_t(got.tokens[t].id);
    REQUIRE(std::abs(logits[id] - *best - std::log(sum) - double(got.tokens[t].logprob)) <=
            kLogprobTolerance);
    REQUIRE(*best - logits[id] <= kLogprobTolerance);  // greedy
    if (naive.eviction_gap() < kClose) return t + 1;
    feed = {got.tokens[t].id};
  }
  REQUIRE(naive.kept() == got.kept);
  return got.tokens.size();
}

}  // namespace

TEST_CASE("every policy and family gives what the definition gives", "[oracle]") {
  const std::vector<int32_t> lengths =
      kEmulated ? std::vector{5, 10, 23, 40} : std::vector{1, 5, 9, 10, 23, 40};
  for (size_t family = 0; family < tiny_kinds().size(); family++) {
    const std::string& kind = tiny_kinds()[family];
    Engine engine(tiny_model(kind, 5));
    Random random(17);
    size_t compared = 0, tokens = 0;
    for (const NaivePolicy& p : policies_for(engine.model.spec, family)) {
      CAPTURE(kind, policy::name(p.id), p.budget.sinks, p.budget.heavy, p.budget.recent);
      CAPTURE(int(p.positions));
      std::vector<Request> rows;
      for (const int32_t length : lengths)
        rows.push_back(request_of(engine.model.spec,
                                  random_prompt(random, engine.model.spec.vocab, length), 20, p));
      for (Request& r : rows) r.report_kept = true;
      const auto done = run_all(engine.generator({2, 2, 7, 30}), rows);
      for (size_t row = 0; row < rows.size(); row++) {
        CAPTURE(row);
        compared += compare(engine.model, p, rows[row], done[row]);
        tokens += done[row].tokens.size();
      }
    }
    CAPTURE(kind, compared, tokens);
    CHECK(compared * 10 >= tokens * 9);  // hardly any row comes near a tie
  }
}

TEST_CASE("with positions within the cache a row runs past the model's positions", "[oracle]") {
  Engine engine(tiny_model("llama", 6));
  const NaivePolicy p{Id::h2o, {1, 6, 6}, Positions::cache};
  Random random(3);
  Request r =
      request_of(engine.model.spec, random_prompt(random, engine.model.spec.vocab, 80), 60, p);
  r.report_kept = true;
  const auto done = run_all(engine.generator(), {r});
  CHECK(compare(engine.model, p, r, done[0]) > 20);
}

TEST_CASE("a continuation is judged token by token under the policy", "[oracle]") {
  Engine engine(tiny_model("neox", 8));
  Random random(4);
  for (size_t trial = 0; trial < policies().size(); trial += kEvery) {
    const NaivePolicy& p = policies()[trial];
    Request r =
        request_of(engine.model.spec, random_prompt(random, engine.model.spec.vocab, 30), 12, p);
    r.forced = random_prompt(random, engine.model.spec.vocab, 12);
    const auto done = run_all(engine.generator(), {r});
    REQUIRE(done[0].tokens.size() == 12);
    NaiveSequence naive(engine.model, p);
    std::vector<int32_t> feed = r.prompt;
    for (size_t t = 0; t < r.forced.size(); t++) {
      const std::vector<double> logits = naive.forward(feed);
      const double best = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (const double l : logits) sum += std::exp(l - best);
      const double expected = logits[size_t(r.forced[t])] - best - std::log(sum);
      REQUIRE(done[0].tokens[t].id == r.forced[t]);
      REQUIRE(std::abs(double(done[0].tokens[t].logprob) - expected) <= kLogprobTolerance);
      REQUIRE(done[0].tokens[t].is_greedy == (logits[size_t(r.forced[t])] == best));
      if (naive.eviction_gap() < kClose) break;
      feed = {r.forced[t]};
    }
  }
}
