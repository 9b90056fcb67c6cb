#include "runtime/apps/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/run_job.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

size_t rows_of(const BenchCase& bench) {
  return std::min(bench.requests.size(), size_t(kAgreementRows));
}

BatchShape shape_of(const BenchCase& bench, size_t rows) {
  BatchShape shape = bench.shape;
  shape.groups = 1;
  shape.rows_per_group = int32_t(rows);
  shape.prefill_tokens = int32_t(rows) * bench.prompt_len;  // all begin in one step
  return shape;
}

double log_sum(std::span<const float> logits, float highest) {
  double sum = 0;
  for (const float l : logits) sum += std::exp(double(l) - double(highest));
  return double(highest) + std::log(sum);
}

struct Difference {
  bool same;
  double kl;
};
Difference difference(std::span<const float> full, std::span<const float> other) {
  const auto best = std::max_element(full.begin(), full.end()),
             other_best = std::max_element(other.begin(), other.end());
  const double lse = log_sum(full, *best), other_lse = log_sum(other, *other_best);
  double kl = 0;
  for (size_t i = 0; i < full.size(); i++) {
    const double log_p = double(full[i]) - lse, log_q = double(other[i]) - other_lse;
    kl += std::exp(log_p) * (log_p - log_q);
  }
  return {best - full.begin() == other_best - other.begin(), std::max(kl, 0.0)};
}

// Rows 2 i and 2 i + 1 of the job are a pair. They take the same steps, but a pair's logits need
// not follow one another: the earlier ones wait.
class Pairs {
 public:
  explicit Pairs(size_t pairs) : waiting_(2 * pairs), seen_(2 * pairs) {}

  void add(size_t row, std::span<const float> logits) {
    if (seen_[row]++ == 0) return;  // prefill's
    const size_t partner = row ^ 1;
    if (waiting_[partner].empty()) {
      waiting_[row].emplace_back(logits.begin(), logits.end());
      return;
    }
    const std::vector<float> other = std::move(waiting_[partner].front());
    waiting_[partner].pop_front();
    const Difference d = row % 2 == 0 ? difference(logits, other) : difference(other, logits);
    tokens++;
    same += d.same;
    kl += d.kl;
  }

  int64_t tokens = 0, same = 0;
  double kl = 0;

 private:
  std::vector<std::deque<std::vector<float>>> waiting_;  // [row]
  std::vector<int64_t> seen_;
};

}  // namespace

SideBySide side_by_side(const BenchCase& bench) {
  SideBySide both;
  for (size_t r = 0; r < rows_of(bench); r++) {
    both.requests.push_back(with_full_cache(bench.requests[r]));
    both.requests.push_back(bench.requests[r]);
  }
  both.shape = shape_of(bench, both.requests.size());
  return both;
}

Tokens full_tokens(LoadedModel& model, DType kv_dtype, const BenchCase& bench) {
  std::vector<Request> requests;
  for (size_t r = 0; r < rows_of(bench); r++)
    requests.push_back(with_full_cache(bench.requests[r]));
  Tokens tokens(requests.size());
  Listener listener;
  listener.on_token = [&](size_t row, const TokenChoice& token) {
    tokens[row].push_back(token.id);
    return true;
  };
  Generator generator = model.generator(shape_of(bench, requests.size()), kv_dtype);
  run_job(generator, requests, listener);
  return tokens;
}

Agreement compare(LoadedModel& model, DType kv_dtype, const BenchCase& bench, const Tokens& full,
                  const Tokens& free) {
  SideBySide both = side_by_side(bench);
  std::vector<int64_t> firsts;
  for (size_t r = 0; r < rows_of(bench); r++) {
    for (const size_t i : {2 * r, 2 * r + 1}) {
      both.requests[i].forced = full[r];
      both.requests[i].max_new_tokens = int32_t(full[r].size());
    }
    firsts.push_back(
        std::mismatch(full[r].begin(), full[r].end(), free[r].begin(), free[r].end()).first -
        full[r].begin());
  }
  Pairs pairs(rows_of(bench));
  Listener listener;
  std::string error;
  listener.on_logits = [&](size_t row, std::span<const float> logits) { pairs.add(row, logits); };
  listener.on_done = [&](size_t, Completion&& done) {
    if (done.finish == Finish::failed) error = done.error;
  };
  Generator generator = model.generator(both.shape, kv_dtype);
  run_job(generator, both.requests, listener);
  if (!error.empty()) fail(Fault::bad_input, "agreement of {}: {}", bench.policy, error);

  std::sort(firsts.begin(), firsts.end());
  const double tokens = double(std::max<int64_t>(pairs.tokens, 1));
  return {
      int64_t(firsts.size()), pairs.tokens,   pairs.tokens > 0 ? double(pairs.same) / tokens : 1,
      pairs.kl / tokens,      firsts.front(), firsts[firsts.size() / 2]};
}

}  // namespace hydrant
