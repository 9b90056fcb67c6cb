#include <algorithm>
#include <exception>

#include "runtime/apps/bandwidth.hpp"
#include "runtime/apps/bench_report.hpp"
#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/command.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/interrupt.hpp"
#include "runtime/apps/memory_plan.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/prediction.hpp"
#include "runtime/apps/profile_file.hpp"
#include "runtime/apps/progress.hpp"
#include "runtime/apps/run_job.hpp"
#include "runtime/apps/trace_file.hpp"
#include "runtime/apps/traffic_meter.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

using OrderedJson = nlohmann::ordered_json;

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

class Bench {
 public:
  Bench(const RunConfig& config, const Model& model, Device& device, LoadedModel& loaded,
        const std::vector<BenchCase>& cases)
      : config_(config), loaded_(loaded), kv_dtype_(cache_dtype(config)) {
    const double bandwidth = memory_bandwidth(device.threads());
    for (const BenchCase& c : cases) {
      BenchResult& r = results_.emplace_back();
      r.bench = &c;
      r.weights = loaded.weights().bytes;
      r.bandwidth = bandwidth;
      r.decode_bytes = decode_bytes(c, model, loaded.weights(), kv_dtype_);
      r.cache_moves =
          predicted_cache_moves(loaded, model.spec, device.ops(), c.shape, kv_dtype_, c.requests);
    }
    free_tokens_.resize(cases.size());
    if (config.bench.profile.empty()) return;
    const MachineRates rates = read_profile(config.bench.profile);
    warn_of_other_machine(rates, config.bench.profile, device);
    for (BenchResult& r : results_)
      r.prediction = predict_run(rates, model, device, loaded.plan(), r.bench->shape, kv_dtype_,
                                 workload_of(r.bench->requests));
  }

  // In turns, so that a drift of the machine's speed meets all cases alike. False: interrupted.
  bool run() {
    const int rounds = config_.bench.warmup + config_.bench.repeats;
    Progress progress("measuring", config_.quiet);
    for (int round = 0; round < rounds; round++)
      for (size_t i = 0; i < results_.size(); i++) {
        progress.show(
            double(size_t(round) * results_.size() + i) / double(size_t(rounds) * results_.size()),
            fmt::format("round {} of {}, {} x {}", round + 1, rounds, results_[i].bench->policy,
                        results_[i].bench->batch));
        if (!run_once(i, round >= config_.bench.warmup)) return false;
      }
    return !config_.bench.agreement || add_agreement();
  }

  // Cases that have been measured at least once.
  std::vector<OrderedJson> rows(const BenchMachine& machine) const {
    std::vector<OrderedJson> rows;
    for (const BenchResult& r : results_)
      if (!r.runs.empty()) rows.push_back(json_row(r, machine));
    return rows;
  }

 private:
  bool run_once(size_t index, bool counts) {
    BenchResult& r = results_[index];
    const BenchCase& c = *r.bench;
    Generator generator = loaded_.generator(c.shape, kv_dtype_);
    const MemoryNeed need = generator.need(c.requests);
    r.kv = need.all_kv();
    r.workspace = need.workspace;
    r.full_kv = full_kv_bytes(generator, c.requests, c.shape);
    Tokens tokens(c.requests.size());
    PeakWatch watch;
    r.predicted_peak = resident_memory() + need.memory();
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
    if (end.interrupted) return false;
    if (!error.empty()) fail(Fault::bad_input, "bench of {}: {}", c.policy, error);
    r.peak = std::max(r.peak, watch.highest());
    if (counts) {
      r.runs.push_back({end.figures.prefill_seconds, end.figures.decode_seconds});
      r.traffic += traffic.end(end.figures.steps);
    }
    free_tokens_[index] = std::move(tokens);
    return true;
  }

  bool add_agreement() {
    Progress progress("comparing", config_.quiet);
    const BenchCase* with = nullptr;  // what `full` belongs to
    Tokens full;
    for (size_t i = 0; i < results_.size(); i++) {
      const BenchCase& c = *results_[i].bench;
      progress.show(double(i) / double(results_.size()), c.policy);
      if (!with || with->prompt_len != c.prompt_len || with->output_len != c.output_len ||
          with->batch != c.batch) {
        full = full_tokens(loaded_, kv_dtype_, c);
        with = &c;
      }
      if (interrupted()) return false;
      results_[i].agreement = compare(loaded_, kv_dtype_, c, full, free_tokens_[i]);
      if (interrupted()) {
        results_[i].agreement.reset();
        return false;
      }
    }
    return true;
  }

  const RunConfig& config_;
  LoadedModel& loaded_;
  DType kv_dtype_;
  std::vector<BenchResult> results_;
  std::vector<Tokens> free_tokens_;
};

// Each wherever it can be written: minutes of measuring lie in it. Then throws the first failure.
void write_report(const BenchConfig& to, const OrderedJson& document,
                  const std::vector<OrderedJson>& rows) {
  std::exception_ptr failure;
  const auto attempt = [&](const auto& write) {
    try {
      write();
    } catch (const Error&) {
      if (!failure) failure = std::current_exception();
    }
  };
  attempt([&] {
    if (to.json.empty()) return;
    write_file(to.json, document.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
  });
  attempt([&] {
    if (!to.csv.empty()) write_file(to.csv, csv_text(rows));
  });
  attempt([&] { Output("").write(table_text(rows)); });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

int run_bench(const RunConfig& config, const Sources& sources) {
  check_writable(config.bench.json, sources.name("bench.json"));
  check_writable(config.bench.csv, sources.name("bench.csv"));
  if (!config.bench.profile.empty()) read_profile(config.bench.profile);  // a bad one: at once
  const Model model = open_described_model(config, sources);
  const auto tokenizer = open_tokenizer(model.files);
  const std::vector<BenchCase> cases = bench_cases(config, sources, model.spec, *tokenizer);
  const auto device = open_device(config);
  RunNeed need;  // of the largest case
  for (const BenchCase& c : cases) {
    need = larger(need, run_need(config, model, *device, c.shape, c.requests));
    if (config.bench.agreement) {
      const SideBySide both = side_by_side(c);
      need = larger(need, run_need(config, model, *device, both.shape, both.requests));
    }
  }
  RunPlan plan = fitting_plan(config, sources, model, *device, need);
  const RunConfig effective = placed(config, plan);
  LoadedModel loaded(model, *device, std::move(plan), config.quiet);
  log::info("{}; ready after {:.2f} s", machine_line(model, loaded, *device, cache_dtype(config)),
            loaded.load_seconds());
  log::info("{}", memory_line(loaded.plan()));
  log::info("config {}", effective_config(effective, Command::bench).dump());

  Bench bench(config, model, *device, loaded, cases);
  const TraceFile trace(config, sources);
  const bool whole = bench.run();
  trace.write();
  const auto rows =
      bench.rows({loaded.weights().formats, std::string(name(cache_dtype(config))),
                  loaded.weights().activations, std::string(device->isa()), device->threads(),
                  loaded.plan().offload.shares, loaded.plan().caches.shares, config.memory.link});
  const OrderedJson document{{"version", HYDRANT_VERSION},
                             {"model", config.model},
                             {"device", device->describe()},
                             {"config", OrderedJson(effective_config(effective, Command::bench))},
                             {"rows", rows}};
  write_report(config.bench, document, rows);
  if (!whole) log::warning("interrupted; what was measured is shown");
  return whole ? 0 : kInterrupted;
}

}  // namespace hydrant
