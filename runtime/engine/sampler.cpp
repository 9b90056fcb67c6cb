#include "runtime/engine/sampler.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "runtime/base/rng.hpp"

namespace hydrant {
namespace {

// Higher logits come first; among equals the lower id, so that no order is left to chance.
constexpr auto before = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

bool is_plain_greedy(const Sampling& sampling) {
  return sampling.temperature == 0 && sampling.repetition_penalty == 1;
}

// The `count` best of `logits` in order, into `best` (cleared first): a heap with the worst of them
// on top, which nearly every other candidate fails to enter.
template <class Item>
void select_best(std::span<const float> logits, size_t count, std::vector<Item>& best) {
  best.clear();
  for (size_t id = 0; id < logits.size(); id++) {
    const Item item{int32_t(id), logits[id], 0};
    if (best.size() < count) {
      best.push_back(item);
      std::push_heap(best.begin(), best.end(), before);
    } else if (item.logit > best.front().logit) {
      std::pop_heap(best.begin(), best.end(), before);
      best.back() = item;
      std::push_heap(best.begin(), best.end(), before);
    }
  }
  std::sort_heap(best.begin(), best.end(), before);
}

// Finite, so that the best logit's distance to itself stays 0.
float scale_of(const Sampling& sampling) { return std::min(1 / sampling.temperature, 1e30f); }

// e^x for kLeast <= x <= 0, to a few units in the seventh digit: without a call, so that the
// compiler can make vectors of it.
constexpr float kLeast = -87.0f;
float exp_negative(float x) {
  const float exponent = x * 1.44269504f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const float whole = (exponent + kRound) - kRound, f = exponent - whole;
  float power = 1.54035304e-4f * f + 1.33335581e-3f;
  power = power * f + 9.61812911e-3f;
  power = power * f + 5.55041087e-2f;
  power = power * f + 2.40226507e-1f;
  power = power * f + 6.93147181e-1f;
  power = power * f + 1.0f;
  return power * std::bit_cast<float>((int32_t(whole) + 127) << 23);
}

// A weight's sign, exponent and first bits; they order weights as the weights themselves.
constexpr int kTrailingBits = 20;
size_t leading_bits(float weight) { return std::bit_cast<uint32_t>(weight) >> kTrailingBits; }

void weigh(std::span<const float> logits, float best, float scale, std::vector<float>& weights) {
  weights.resize(logits.size());
  float* const out = weights.data();
  // Two loops: with the bound in the second one it would have a branch.
  for (size_t i = 0; i < logits.size(); i++) out[i] = std::max((logits[i] - best) * scale, kLeast);
  for (size_t i = 0; i < logits.size(); i++) out[i] = exp_negative(out[i]);
}

template <class Candidates>
double total(const Candidates& candidates) {
  double sum = 0;
  for (const auto& c : candidates) sum += double(c.weight);
  return sum;
}

// Candidates are sorted; keeps the first ones that reach p of `all`.
template <class Candidates>
void cut_nucleus(Candidates& candidates, float p, double all) {
  size_t keep = 0;
  for (double mass = 0; keep < candidates.size() && mass < double(p) * all; keep++)
    mass += double(candidates[keep].weight);
  candidates.resize(std::max<size_t>(keep, 1));
}

}  // namespace

Sampler::Sampler(int32_t vocab) {
  scaled_.reserve(size_t(vocab));
  weights_.reserve(size_t(vocab));
  candidates_.reserve(size_t(vocab));
  sums_.resize(leading_bits(1.0f) + 1);  // no weight is above 1
}

TokenChoice Sampler::choose(const RowLogits& logits, const Request& request, int32_t index,
                            std::span<const int32_t> seen) {
  TokenChoice choice;
  if (!request.forced.empty()) {
    choice.id = request.forced[size_t(index)];
  } else if (is_plain_greedy(request.sampling)) {
    choice.id = logits.best;
  } else {
    choice.id = pick(logits, request.sampling, index, seen);
  }
  const float logit = logits.values[size_t(choice.id)];
  choice.logprob = logit - logits.lse;
  choice.is_greedy = logit == logits.values[size_t(logits.best)];
  if (request.top_logprobs > 0) best_of(logits, request.top_logprobs, choice);
  return choice;
}

int32_t Sampler::pick(const RowLogits& logits, const Sampling& sampling, int32_t index,
                      std::span<const int32_t> seen) {
  scaled_.assign(logits.values.begin(), logits.values.end());
  for (const int32_t id : seen) {
    float& logit = scaled_[size_t(id)];
    logit = logit > 0 ? logit / sampling.repetition_penalty : logit * sampling.repetition_penalty;
  }
  const auto top = std::max_element(scaled_.begin(), scaled_.end());  // the first among equals
  if (sampling.temperature == 0) return int32_t(top - scaled_.begin());

  const double u = uniform(sampling.seed, 0, uint64_t(index));
  if (sampling.top_k > 0 && size_t(sampling.top_k) < scaled_.size()) {
    keep_top_k(sampling, *top);
  } else {
    weigh(scaled_, *top, scale_of(sampling), weights_);
    if (sampling.top_p == 1 && sampling.min_p == 0) return draw_of_all(u);
    if (sampling.top_p < 1)
      keep_top_p(sampling);
    else
      keep_heavier(sampling.min_p);
  }
  // A share of the likeliest one's probability, whose weight is 1.
  if (sampling.min_p > 0)
    std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < sampling.min_p; });
  double left = u * total(candidates_);
  for (const Candidate& c : candidates_)
    if ((left -= double(c.weight)) < 0) return c.id;
  return int32_t(top - scaled_.begin());  // rounding has left a crumb: it is the likeliest one's
}

// The best k, and of them the fewest that reach top_p.
void Sampler::keep_top_k(const Sampling& sampling, float best) {
  select_best<Candidate>(scaled_, size_t(sampling.top_k), candidates_);
  const float scale = scale_of(sampling);
  for (Candidate& c : candidates_)
    c.weight = exp_negative(std::max((c.logit - best) * scale, kLeast));
  cut_nucleus(candidates_, sampling.top_p, total(candidates_));
}

// The fewest likeliest ones that reach top_p. Sums by the weights' leading bits tell how light the
// lightest of them is, so that only few are sorted.
void Sampler::keep_top_p(const Sampling& sampling) {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  for (const float w : weights_) sums_[leading_bits(w)] += double(w);
  const double all = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  size_t lightest = sums_.size();
  for (double mass = 0; lightest > 0 && mass < double(sampling.top_p) * all;)
    mass += sums_[--lightest];
  keep_heavier(std::bit_cast<float>(uint32_t(lightest) << kTrailingBits));
  std::sort(candidates_.begin(), candidates_.end(), before);
  cut_nucleus(candidates_, sampling.top_p, all);
}

void Sampler::keep_heavier(float least) {
  candidates_.clear();
  for (size_t id = 0; id < weights_.size(); id++)
    if (weights_[id] >= least) candidates_.push_back({int32_t(id), scaled_[id], weights_[id]});
}

// Of the whole vocabulary: first the block, then the one in it.
int32_t Sampler::draw_of_all(double u) {
  constexpr size_t kBlock = 64;
  const auto block_sum = [&](size_t begin) {
    double sum[4] = {};
    const size_t end = std::min(begin + kBlock, weights_.size());
    for (size_t i = begin; i < end; i++) sum[i % 4] += double(weights_[i]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  };
  double all = 0;
  for (size_t begin = 0; begin < weights_.size(); begin += kBlock) all += block_sum(begin);
  double left = u * all;
  for (size_t begin = 0; begin < weights_.size(); begin += kBlock) {
    const double sum = block_sum(begin);
    if (left >= sum) {
      left -= sum;
      continue;
    }
    const size_t end = std::min(begin + kBlock, weights_.size());
    for (size_t i = begin; i < end; i++)
      if ((left -= double(weights_[i])) < 0) return int32_t(i);
  }
  // Rounding has left a crumb: it is the likeliest one's.
  return int32_t(std::max_element(weights_.begin(), weights_.end()) - weights_.begin());
}

void Sampler::best_of(const RowLogits& logits, int32_t count, TokenChoice& choice) {
  select_best<Candidate>(logits.values, size_t(count), candidates_);
  choice.best.reserve(candidates_.size());
  for (const Candidate& c : candidates_) choice.best.push_back({c.id, c.logit - logits.lse});
}

}  // namespace hydrant
