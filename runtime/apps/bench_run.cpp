#include "runtime/apps/bench_run.hpp"

#include <algorithm>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/interrupt.hpp"
#include "runtime/apps/prediction.hpp"
#include "runtime/apps/profile_file.hpp"
#include "runtime/apps/progress.hpp"
#include "runtime/apps/run_job.hpp"
#include "runtime/apps/traffic_meter.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

// The first token of a row is prefill's; the others are read from weights and cache.
double decode_bytes(const BenchCase& c, const Model& model, const WeightPlan& weights,
                    DType kv_dtype) {
  double matrices = 0;
  for (const MatrixPlan& m : weights.matrices) {
    const bool looked_up = m.source.role == Matrix::places ||
                           (m.source.role == Matrix::tokens && !model.spec.tied_head);
    if (!looked_up) matrices += double(m.weight.panel_bytes) * double((m.weight.n + 15) / 16);
  }
  const BlockSpec& b = model.spec.block;
  const double slot = double(b.kv_heads) * 2 * double(row_bytes(kv_dtype, b.head_dim));
  double bytes = 0;
  for (int32_t t = 1; t < c.output_len; t++) {
    bytes += matrices * c.shape.groups;
    for (const policy::RowPlan& plan : c.requests.front().plans)
      bytes += slot * plan.slots.live_rows(c.prompt_len + t - 1) * c.batch;
  }
  return bytes;
}

// The highest that memory has been since it was made: by the system's own mark where that can be
// set back, else by looking at every step.
class PeakWatch {
 public:
  PeakWatch() : marked_(reset_peak_memory()), highest_(resident_memory()) {}
  void look() {
    if (!marked_) highest_ = std::max(highest_, resident_memory());
  }
  size_t highest() const { return marked_ ? peak_memory() : highest_; }

 private:
  bool marked_;
  size_t highest_;
};

}  // namespace

BenchRun::BenchRun(const RunConfig& config, const Model& model, Device& device, LoadedModel& loaded,
                   const MemoryNeed& planned, std::span<BenchResult* const> results)
    : config_(config),
      spec_(model.spec),
      ops_(device.ops()),
      loaded_(loaded),
      kv_dtype_(cache_dtype(config, device)),
      without_rows_(loaded.plan().peak() - planned.memory()),
      results_(results),
      free_tokens_(results.size()) {
  for (BenchResult* r : results_) {
    const BenchCase& c = *r->bench;
    r->decode_bytes = decode_bytes(c, model, loaded.weights(), kv_dtype_);
  }
  if (config.bench.profile.empty()) return;
  const MachineRates rates = read_profile(config.bench.profile);
  warn_of_other_machine(rates, config.bench.profile, device);
  for (BenchResult* r : results_)
    r->prediction = predict_run(rates, model, device, loaded.plan(), r->bench->shape, kv_dtype_,
                                workload_of(r->bench->requests));
}

void BenchRun::run() {
  const int rounds = config_.bench.warmup + config_.bench.repeats;
  Progress progress("measuring", config_.quiet);
  for (int round = 0; round < rounds; round++)
    for (size_t i = 0; i < results_.size(); i++) {
      BenchResult& r = *results_[i];
      if (!r.misfit.empty()) continue;
      progress.show(
          double(size_t(round) * results_.size() + i) / double(size_t(rounds) * results_.size()),
          fmt::format("round {} of {}, {} x {}", round + 1, rounds, r.bench->policy,
                      r.bench->batch));
      try {
        run_once(i, round >= config_.bench.warmup);
      } catch (const Error& e) {
        if (e.fault() != Fault::out_of_memory) throw;
        r.misfit = e.what();
        r.runs.clear();
      }
    }
  if (config_.bench.agreement) add_agreement();
}

void BenchRun::run_once(size_t index, bool counts) {
  BenchResult& r = *results_[index];
  const BenchCase& c = *r.bench;
  Generator generator = loaded_.generator(c.shape, kv_dtype_);
  const MemoryNeed need = generator.need(c.requests);
  r.kv = need.all_kv();
  r.workspace = need.workspace;
  r.full_kv = full_kv_bytes(generator, c.requests, c.shape);
  Tokens tokens(c.requests.size());
  PeakWatch watch;
  r.predicted_peak = std::max(resident_memory(), without_rows_) + need.memory();
  Listener listener;
  std::string error;
  listener.on_token = [&](size_t row, const TokenChoice& token) {
    watch.look();
    tokens[row].push_back(token.id);
    return true;
  };
  listener.on_done = [&](size_t, Completion&& done) {
    if (done.finish == Finish::failed) error = done.error;
  };
  TrafficMeter traffic(loaded_);
  const JobEnd end = run_job(generator, c.requests, listener);
  if (end.interrupted) throw Interrupted{};
  if (!error.empty()) fail(Fault::bad_input, "bench of {}: {}", c.policy, error);
  r.peak = std::max(r.peak, watch.highest());
  if (counts) {
    r.runs.push_back({end.figures.prefill_seconds, end.figures.decode_seconds});
    r.traffic += traffic.end(end.figures.steps);
    r.cache_moves += predicted_cache_moves(loaded_, spec_, ops_, c.shape, kv_dtype_, c.requests);
  }
  free_tokens_[index] = std::move(tokens);
}

void BenchRun::add_agreement() {
  Progress progress("comparing", config_.quiet);
  const BenchCase* with = nullptr;  // what `full` belongs to
  Tokens full;
  for (size_t i = 0; i < results_.size(); i++) {
    if (!results_[i]->misfit.empty()) continue;
    const BenchCase& c = *results_[i]->bench;
    progress.show(double(i) / double(results_.size()), c.policy);
    if (!with || with->prompt_len != c.prompt_len || with->output_len != c.output_len ||
        with->batch != c.batch) {
      full = full_tokens(loaded_, kv_dtype_, c);
      with = &c;
    }
    if (interrupted()) throw Interrupted{};
    results_[i]->agreement = compare(loaded_, kv_dtype_, c, full, free_tokens_[i]);
    if (interrupted()) {
      results_[i]->agreement.reset();
      throw Interrupted{};
    }
  }
}

}  // namespace hydrant
