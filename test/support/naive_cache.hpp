// One head of an evicting cache as a list of tokens, oldest first, straight from the definition: no
// slots, no regions. Scores are doubles, so sums of what the tests use are exact.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "policies/policy.hpp"

namespace hydrant::test {

struct NaiveToken {
  int32_t position;
  double score;
  friend bool operator==(const NaiveToken&, const NaiveToken&) = default;
};

class NaiveCache {
 public:
  using Mass = std::function<double(int32_t position)>;

  NaiveCache(policy::Id policy, policy::SlotLayout budget) : policy_(policy), budget_(budget) {}

  // All of the prompt, then down to the budget. sum, last: of the columns of its attention.
  void prompt(int32_t length, const Mass& sum, const Mass& last) {
    for (; next_ < length; next_++)
      tokens_.push_back({next_, policy_ == policy::Id::tova ? last(next_) : sum(next_)});
    while (int32_t(tokens_.size()) > budget_.capacity()) evict(/*promotes=*/false);
  }

  // One token more; returns the position that was evicted. mass: the probability that each position
  // received from the new token, summed over the query heads.
  std::optional<int32_t> step(const Mass& mass) {
    tokens_.push_back({next_++, 0});
    for (NaiveToken& token : tokens_) {
      if (policy_ == policy::Id::tova) token.score = 0;
      token.score += mass(token.position);
    }
    if (int32_t(tokens_.size()) <= budget_.capacity()) return std::nullopt;
    return evict(policy_ == policy::Id::h2o_promote);
  }

  const std::vector<NaiveToken>& tokens() const { return tokens_; }

 private:
  int32_t evict(bool promotes) {
    std::vector<size_t> candidates;
    for (size_t i = 0; i + size_t(budget_.recent) < tokens_.size(); i++)
      if (tokens_[i].position >= budget_.sinks) candidates.push_back(i);
    if (promotes && candidates.size() > 1) candidates.pop_back();
    size_t victim = candidates.front();  // the oldest, unless another has a lower score
    for (const size_t i : candidates)
      if (tokens_[i].score < tokens_[victim].score) victim = i;
    const int32_t position = tokens_[victim].position;
    tokens_.erase(tokens_.begin() + std::ptrdiff_t(victim));
    return position;
  }

  policy::Id policy_;
  policy::SlotLayout budget_;
  std::vector<NaiveToken> tokens_;
  int32_t next_ = 0;
};

// The slots of one head as the same list, to be compared.
inline std::vector<NaiveToken> as_tokens(const int32_t* position, const float* score,
                                         int32_t stored) {
  std::vector<NaiveToken> tokens;
  for (int32_t slot = 0; slot < stored; slot++) tokens.push_back({position[slot], score[slot]});
  std::sort(tokens.begin(), tokens.end(),
            [](const NaiveToken& a, const NaiveToken& b) { return a.position < b.position; });
  return tokens;
}

}  // namespace hydrant::test
