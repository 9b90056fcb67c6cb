// What a policy changes: its choices beside the full cache's.
#pragma once
#include "runtime/apps/bench_cases.hpp"
#include "runtime/apps/loaded_model.hpp"

namespace hydrant {

struct Agreement {
  int64_t rows = 0, tokens = 0;
  double same = 1;     // share of tokens whose arg max equals the full cache's
  double mean_kl = 0;  // KL(full || policy) in nats
  // The first token that differs when both run freely: over the rows, the earliest and the median;
  // a row that never differs counts its length.
  int64_t earliest_difference = 0, median_difference = 0;
};

// Compares the first rows of the case, at most `kAgreementRows`. Each runs twice side by side, with
// the full cache and with the policy's, both fed what the full cache chose; every token but the
// first counts, which prefill gives before anything is evicted. `full` are the full cache's tokens
// of these rows, `free` the policy's own.
inline constexpr int32_t kAgreementRows = 4;
using Tokens = std::vector<std::vector<int32_t>>;  // [row]
Agreement compare(LoadedModel& model, DType kv_dtype, const BenchCase& bench, const Tokens& full,
                  const Tokens& free);

// The rows of such a comparison, of which each stands there twice, and how they run.
struct SideBySide {
  BatchShape shape;
  std::vector<Request> requests;
};
SideBySide side_by_side(const BenchCase& bench);

// The tokens that the full cache chooses for the first rows of the case.
Tokens full_tokens(LoadedModel& model, DType kv_dtype, const BenchCase& bench);

}  // namespace hydrant
