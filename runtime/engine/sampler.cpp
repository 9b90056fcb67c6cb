#include "runtime/engine/sampler.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace

Sampler::Sampler(int32_t vocab) {
  scaled_.reserve(size_t(vocab));
  candidates_.reserve(size_t(vocab));
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

  const float best = *top;
  const auto vocab = int32_t(scaled_.size());
  if (sampling.top_k > 0 && sampling.top_k < vocab) {
    select_best<Candidate>(scaled_, size_t(sampling.top_k), candidates_);
  } else {
    candidates_.clear();
    for (int32_t id = 0; id < vocab; id++) candidates_.push_back({id, scaled_[size_t(id)], 0});
  }
  const double scale = 1 / double(sampling.temperature);
  for (Candidate& c : candidates_)
    c.weight = double(std::exp(float((double(c.logit) - double(best)) * scale)));
  if (sampling.top_p < 1) keep_top_p(sampling.top_p);
  // A share of the likeliest one's probability, whose weight is 1.
  if (sampling.min_p > 0)
    std::erase_if(candidates_,
                  [&](const Candidate& c) { return c.weight < double(sampling.min_p); });

  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  double left = uniform(sampling.seed, 0, uint64_t(index)) * total;
  for (const Candidate& c : candidates_)
    if ((left -= c.weight) < 0) return c.id;
  // Rounding can leave a crumb: it belongs to the last one that can be drawn.
  const auto last = std::find_if(candidates_.rbegin(), candidates_.rend(),
                                 [](const Candidate& c) { return c.weight > 0; });
  return last->id;
}

// The fewest likeliest ones whose probabilities reach p.
void Sampler::keep_top_p(float p) {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  const auto after = [](const Candidate& a, const Candidate& b) { return before(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), after);
  auto end = candidates_.end();
  for (double mass = 0; end != candidates_.begin() && mass < double(p) * total;) {
    std::pop_heap(candidates_.begin(), end, after);
    mass += (--end)->weight;
  }
  candidates_.erase(candidates_.begin(), end);
  std::reverse(candidates_.begin(), candidates_.end());
}

void Sampler::best_of(const RowLogits& logits, int32_t count, TokenChoice& choice) {
  select_best<Candidate>(logits.values, size_t(count), candidates_);
  choice.best.reserve(candidates_.size());
  for (const Candidate& c : candidates_) choice.best.push_back({c.id, c.logit - logits.lse});
}

}  // namespace hydrant
