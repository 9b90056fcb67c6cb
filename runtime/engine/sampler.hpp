// From a row's logits to its next token, on the host.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/generator.hpp"

namespace hydrant {

// The row's logits and what Ops::summarize_logits found in them.
struct RowLogits {
  std::span<const float> values;  // [vocab]
  int32_t best = 0;               // arg max
  float lse = 0;                  // log of the sum of exp
};

class Sampler {
 public:
  explicit Sampler(int32_t vocab);

  // Chooses the row's token number `index`: the forced one, else by the request's sampling. `seen`
  // are the ids in prompt and output, ascending (empty when there is no penalty).
  TokenChoice choose(const RowLogits& logits, const Request& request, int32_t index,
                     std::span<const int32_t> seen);

 private:
  struct Candidate {
    int32_t id;
    float logit, weight;
  };
  int32_t pick(const RowLogits& logits, const Sampling& sampling, int32_t index,
               std::span<const int32_t> seen);
  void keep_top_k(const Sampling& sampling, float best);
  void keep_top_p(const Sampling& sampling);
  void keep_heavier(float least);
  int32_t draw_of_all(double u);
  void best_of(const RowLogits& logits, int32_t count, TokenChoice& choice);

  std::vector<float> scaled_, weights_;  // [vocab]
  std::vector<Candidate> candidates_;
  std::vector<double> sums_;  // of weights with the same leading bits
};

}  // namespace hydrant
