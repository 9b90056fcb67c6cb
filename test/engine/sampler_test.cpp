#include "runtime/engine/sampler.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>

using namespace hydrant;

namespace {

// The definition in plain words, in double: the ids that may be drawn, with their probabilities.
std::map<int32_t, double> distribution(std::vector<float> logits, const Sampling& s,
                                       const std::vector<int32_t>& seen) {
  for (const int32_t id : seen) {
    float& l = logits[size_t(id)];
    l = l > 0 ? l / s.repetition_penalty : l * s.repetition_penalty;
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
  if (s.top_k > 0 && size_t(s.top_k) < order.size()) order.resize(size_t(s.top_k));
  std::vector<double> p;
  for (const int32_t id : order)
    p.push_back(
        std::exp(double(logits[size_t(id)] - logits[size_t(order[0])]) / double(s.temperature)));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  size_t keep = 0;
  for (double mass = 0; keep < p.size() && (keep == 0 || mass < double(s.top_p) * total); keep++)
    mass += p[keep];
  p.resize(keep);
  while (p.back() < double(s.min_p)) p.pop_back();
  const double left = std::accumulate(p.begin(), p.end(), 0.0);
  std::map<int32_t, double> out;
  for (size_t i = 0; i < p.size(); i++) out[order[i]] = p[i] / left;
  return out;
}

RowLogits summary(const std::vector<float>& logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float l : logits) sum += std::exp(double(l) - double(*best));
  return {logits, int32_t(best - logits.begin()), float(double(*best) + std::log(sum))};
}

const std::vector<float> kLogits{0.5f,  2.0f, -1.0f, 1.5f, 2.5f, 0.0f,
                                 -3.0f, 1.0f, 2.0f,  0.7f, 1.9f, -0.4f};

}  // namespace

TEST_CASE("greedy takes the arg max and reports unscaled log-probabilities", "[sampler]") {
  Sampler sampler(int32_t(kLogits.size()));
  const RowLogits logits = summary(kLogits);
  Request request;
  request.top_logprobs = 3;
  const TokenChoice choice = sampler.choose(logits, request, 0, {});
  CHECK(choice.id == 4);
  CHECK(choice.is_greedy);
  CHECK(choice.logprob == 2.5f - logits.lse);
  REQUIRE(choice.best.size() == 3);
  CHECK(choice.best[0].id == 4);
  CHECK(choice.best[1].id == 1);  // of two equal ones the lower id is first
  CHECK(choice.best[2].id == 8);
  CHECK(choice.best[2].logprob == 2.0f - logits.lse);
}

TEST_CASE("a forced id is judged, not chosen", "[sampler]") {
  std::vector<float> values = kLogits;
  values[8] = 2.5f;  // as good as the arg max
  const RowLogits logits = summary(values);
  Sampler sampler(int32_t(values.size()));
  Request request;
  request.forced = {6, 8};
  const TokenChoice bad = sampler.choose(logits, request, 0, {});
  CHECK(bad.id == 6);
  CHECK(!bad.is_greedy);
  CHECK(bad.logprob == -3.0f - logits.lse);
  const TokenChoice good = sampler.choose(logits, request, 1, {});
  CHECK(good.id == 8);
  CHECK(good.is_greedy);
}

TEST_CASE("the repetition penalty works in greedy choice too and leaves log-probabilities alone",
          "[sampler]") {
  Sampler sampler(int32_t(kLogits.size()));
  Request request;
  request.sampling.repetition_penalty = 2;
  const std::vector<int32_t> seen{4, 6};
  const TokenChoice choice = sampler.choose(summary(kLogits), request, 0, seen);
  CHECK(choice.id == 1);  // 2.5 / 2 falls behind 2.0; the lower of two equal ids
  CHECK(!choice.is_greedy);
  CHECK(choice.logprob == 2.0f - summary(kLogits).lse);
}

TEST_CASE("draws follow the distribution that the settings define", "[sampler]") {
  struct Case {
    Sampling sampling;
    std::vector<int32_t> seen;
  };
  std::vector<Case> cases(11);
  for (Case& c : cases) c.sampling.temperature = 1;
  cases[1].sampling.temperature = 0.5f;
  cases[2].sampling.top_k = 4;
  cases[3].sampling.top_k = 1;
  cases[4].sampling.top_k = 100;
  cases[5].sampling.top_p = 0.8f;
  cases[6].sampling.top_p = 1e-6f;
  cases[7].sampling.min_p = 0.3f;
  cases[8].sampling.min_p = 1;
  cases[9].sampling = {1.3f, 8, 0.9f, 0.1f};
  cases[10] = {{1, 5, 1, 0, 1.5f}, {1, 4, 6, 11}};
  constexpr int kDraws = 20000;
  for (size_t i = 0; i < cases.size(); i++) {
    CAPTURE(i);
    Request request;
    request.sampling = cases[i].sampling;
    request.sampling.seed = 40 + i;
    const auto expected = distribution(kLogits, request.sampling, cases[i].seen);
    const RowLogits logits = summary(kLogits);
    Sampler sampler(int32_t(kLogits.size()));
    std::map<int32_t, int> drawn;
    for (int32_t n = 0; n < kDraws; n++)
      drawn[sampler.choose(logits, request, n, cases[i].seen).id]++;
    for (const auto& [id, count] : drawn) {
      CAPTURE(id);
      REQUIRE(expected.contains(id));
    }
    for (const auto& [id, p] : expected) {
      CAPTURE(id, p);
      // Five deviations of a binomial count.
      CHECK(std::abs(drawn[id] - p * kDraws) <= 5 * std::sqrt(kDraws * p * (1 - p)) + 1e-6);
    }
  }
}

TEST_CASE("a draw depends on the seed and the token's number alone", "[sampler]") {
  Request request;
  request.sampling.temperature = 2;
  request.sampling.seed = 5;
  const RowLogits logits = summary(kLogits);
  Sampler used(int32_t(kLogits.size())), fresh(int32_t(kLogits.size()));
  std::vector<int32_t> forwards, backwards(50), other_seed;
  for (int32_t n = 0; n < 50; n++) forwards.push_back(used.choose(logits, request, n, {}).id);
  for (int32_t n = 50; n-- > 0;) backwards[size_t(n)] = fresh.choose(logits, request, n, {}).id;
  CHECK(forwards == backwards);
  request.sampling.seed = 6;
  for (int32_t n = 0; n < 50; n++) other_seed.push_back(used.choose(logits, request, n, {}).id);
  CHECK(forwards != other_seed);
}

TEST_CASE("extreme values do not break sampling", "[sampler]") {
  Request request;
  std::vector<float> values(12, -1e30f);
  values[7] = 1e10f;
  Sampler sampler(int32_t(values.size()));
  for (const float temperature : {0.01f, 1e-45f, 1e30f})
    for (const float top_p : {1.0f, 0.5f, 1e-30f})
      for (const int32_t top_k : {0, 3}) {
        request.sampling.temperature = temperature;
        request.sampling.top_p = top_p;
        request.sampling.top_k = top_k;
        CAPTURE(temperature, top_p, top_k);
        const bool likely = temperature < 1 || top_p < 1e-20f;
        for (int32_t n = 0; n < 20; n++) {
          const int32_t id = sampler.choose(summary(values), request, n, {}).id;
          CHECK((id == 7 || (!likely && id >= 0 && id < 12)));
        }
      }
}

TEST_CASE("draws from a whole vocabulary have the right frequencies", "[sampler]") {
  // Where no candidate is looked at one by one: steps of a quarter from 0 down to -250.
  std::vector<float> values;
  for (int i = 0; i < 1000; i++) values.push_back(-0.25f * float((i * 7) % 1000));
  const RowLogits logits = summary(values);
  Sampler sampler(1000);
  for (const float top_p : {1.0f, 0.9f}) {
    Request request;
    request.sampling.temperature = 2;
    request.sampling.top_p = top_p;
    const auto expected = distribution(values, request.sampling, {});
    constexpr int kDraws = 20000;
    std::map<int32_t, int> drawn;
    for (int32_t n = 0; n < kDraws; n++) drawn[sampler.choose(logits, request, n, {}).id]++;
    for (const auto& [id, count] : drawn) REQUIRE(expected.contains(id));
    for (const auto& [id, p] : expected) {
      CAPTURE(id, p, top_p);
      CHECK(std::abs(drawn[id] - p * kDraws) <= 5 * std::sqrt(kDraws * p * (1 - p)) + 1);
    }
  }
}
