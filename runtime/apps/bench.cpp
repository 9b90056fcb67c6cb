#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "offload/weights_file.hpp"
#include "runtime/apps/bandwidth.hpp"
#include "runtime/apps/bench_run.hpp"
#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/command.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/idle_keys.hpp"
#include "runtime/apps/interrupt.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/placement_keys.hpp"
#include "runtime/apps/profile_file.hpp"
#include "runtime/apps/progress.hpp"
#include "runtime/apps/spill_folder.hpp"
#include "runtime/apps/trace_file.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

using OrderedJson = nlohmann::ordered_json;

Model open_bench_model(const RunConfig& config, const Sources& sources) {
  if (config.synthetic.shape.empty()) return open_described_model(config, sources);
  const BenchConfig& b = config.bench;
  const auto longest = [](const std::vector<int32_t>& list) {
    return int64_t{*std::max_element(list.begin(), list.end())};
  };
  return open_synthetic(config, sources, longest(b.prompt_len) + longest(b.output_len));
}

MakePrompts prompts_for(const RunConfig& config, const Model& model) {
  if (!config.synthetic.shape.empty()) return random_prompts(model.spec, config.seed);
  return text_prompts(config, *open_tokenizer(model.files));
}

// A case's place in memory.
struct Planned {
  RunConfig config;  // with the placement that was found
  SideBySide both;   // for agreement; of these rows, too, is
  RunNeed need;
  size_t on_disk = 0;  // bytes
  BenchResult result;
};

// What messages call the placement of a case.
Sources names_of(Sources sources) {
  if (!sources.given("bench.placement")) return sources;
  for (const char* path : {"placement.weights", "placement.cache", "placement.activations"})
    sources.forget(path);  // the list is instead of them
  sources.add("placement", sources.name("bench.placement"));
  return sources;
}

// All that is asked of one command: cases under their placements, planned before any weight is
// read, then loaded placement by placement.
class Sweep {
 public:
  Sweep(const RunConfig& config, const Sources& sources)
      : config_(config),
        sources_(names_of(sources)),
        model_(open_bench_model(config, sources)),
        cases_(bench_cases(config, sources, model_.spec, prompts_for(config, model_))),
        device_(open_device(config)) {
    if (is_synthetic()) config_.bench.agreement = false;  // of choices that mean nothing
    weights_ = plan_weights(model_, *device_, config_);
    for (const BenchCase& c : cases_) planned_.push_back(plan(c));
    warn_of_idle_keys();
  }

  // What has been measured stays when it throws: an error, or Interrupted.
  void run() {
    if (!misfit().empty()) return;
    const Interruptible interruptible;
    measure_memory();
    std::vector<char> done(planned_.size());
    for (size_t first = 0; first < planned_.size(); first++) {
      std::vector<size_t> alike;
      for (size_t i = first; i < planned_.size(); i++)
        if (!done[i] && fits(planned_[i]) && same_places(planned_[i], planned_[first])) {
          alike.push_back(i);
          done[i] = true;
        }
      if (!alike.empty()) run_alike(alike);
    }
  }

  // Of cases that have been measured, or that do not fit.
  std::vector<OrderedJson> rows() const {
    std::vector<OrderedJson> rows;
    for (const Planned& p : planned_)
      if (!fits(p) || !p.result.runs.empty()) rows.push_back(json_row(p.result, machine()));
    return rows;
  }
  // Why the first case does not fit when none does; "" when some do.
  std::string misfit() const {
    return std::none_of(planned_.begin(), planned_.end(), fits) ? planned_.front().result.misfit
                                                                : "";
  }

  OrderedJson document(const std::vector<OrderedJson>& rows) const {
    const bool one = std::all_of(planned_.begin(), planned_.end(), [&](const Planned& p) {
      return same_places(p, planned_.front());
    });
    const auto ran = std::find_if(planned_.begin(), planned_.end(), fits);
    const Planned& any = ran != planned_.end() ? *ran : planned_.front();
    return {{"version", HYDRANT_VERSION},
            {"model", is_synthetic() ? model_.files.path : config_.model},
            {"device", device_->describe()},
            {"config", config_json(one ? any.config : config_)},
            {"rows", rows}};
  }

 private:
  bool is_synthetic() const { return !config_.synthetic.shape.empty(); }
  static bool fits(const Planned& p) { return p.result.misfit.empty(); }
  static bool same_places(const Planned& a, const Planned& b) {
    return a.result.bench->placement == b.result.bench->placement &&
           a.result.weight_homes == b.result.weight_homes &&
           a.result.cache_homes == b.result.cache_homes;
  }

  OrderedJson config_json(const RunConfig& config) const {
    OrderedJson shown(effective_config(config, Command::bench));
    if (!config.bench.placement.empty()) shown.erase("placement");  // it is not used
    return shown;
  }

  // A limit that leaves no room for it costs the run nothing but its share of the memory's speed.
  void measure_memory() {
    try {
      bandwidth_ = memory_bandwidth(*device_);
    } catch (const Error& e) {
      if (e.fault() != Fault::out_of_memory) throw;
      log::warning("{}", e.what());
    }
  }

  BenchMachine machine() const {
    return {std::string(name(cache_dtype(config_, *device_))),
            std::string(device_->isa()),
            device_->threads(),
            config_.memory.link,
            is_synthetic(),
            bandwidth_};
  }

  // Of those that could not be told before there was a plan.
  void warn_of_idle_keys() const {
    const bool listed = !config_.bench.placement.empty();
    Still all;
    for (const Planned& p : planned_) all &= still(p.config.placement, config_);
    if (listed || config_.placement.automatic) {
      warn_of_idle_weight_keys(sources_, all);
      warn_of_idle_cache_keys(sources_, all);
      warn_of_idle_disk_keys(sources_, all);
    }
    size_t on_disk = 0;
    for (const Planned& p : planned_)
      if (fits(p)) on_disk = std::max(on_disk, p.on_disk);
    warn_of_folder_in_memory(config_, sources_, on_disk);
    const auto least = std::min_element(config_.bench.batch.begin(), config_.bench.batch.end());
    if (sources_.given("batch.groups") && config_.batch.groups > *least)
      log::warning("{}: a batch of {} cannot be {} groups; it is {}", sources_.name("batch.groups"),
                   *least, config_.batch.groups, *least);
  }

  Planned plan(const BenchCase& c) {
    Planned p;
    p.config = config_;
    p.config.placement = c.placement;
    p.need = run_need(p.config, model_, *device_, c.shape, c.requests);
    if (config_.bench.agreement) {
      p.both = side_by_side(c);
      p.need = larger(p.need, run_need(p.config, model_, *device_, p.both.shape, p.both.requests));
    }
    const RunPlan found = plan_run(p.config, model_, *device_, p.need, weights_);
    note(p, found);
    p.need.placed = found.rows;
    p.config.prefetch = config_.prefetch;  // cases that run together take lanes together
    std::vector<Request> full;
    for (const Request& request : c.requests) full.push_back(with_full_cache(request));
    BenchResult& r = p.result;
    r.bench = &c;
    r.misfit = hydrant::misfit(found, p.config, sources_, model_, *device_, p.need);
    r.weights = weights_.bytes;
    r.weight_format = weights_.formats;
    r.activations = weights_.activations;
    r.kv = p.need.placed.all_kv();
    r.workspace = p.need.placed.workspace;
    r.full_kv = run_need(p.config, model_, *device_, c.shape, full).placed.all_kv();
    r.predicted_peak = found.peak();
    p.on_disk = found.disk.bytes();
    return p;
  }
  // What was found for the case.
  static void note(Planned& p, const RunPlan& found) {
    p.config = placed(p.config, found);
    p.result.weight_homes = found.offload.shares;
    p.result.cache_homes = found.caches.shares;
    p.result.disk_lanes = found.disk_lanes();
  }

  // Weights that are made up are on disk while placements read them from there. The plan is of
  // the checkpoint that there is then.
  void keep_on_disk(bool wanted) {
    Checkpoint& checkpoint = model_.files.checkpoint;
    if (!is_synthetic() || wanted != checkpoint.is_made()) return;
    if (wanted) {
      Checkpoint written = written_weights();
      made_ = std::exchange(checkpoint, std::move(written));
    } else {
      checkpoint = std::move(*made_);
    }
    weights_ = plan_weights(model_, *device_, config_);
  }

  Checkpoint written_weights() const {
    const Checkpoint& made = model_.files.checkpoint;
    const std::string folder = folder_of(config_);
    log::info("writing {} of synthetic weights to {}, where they are while they are read",
              bytes_text(made.made_bytes()), folder);
    Progress bar("writing", config_.quiet);
    return write_weights(made, folder, [&](uint64_t done, uint64_t total) {
      if (interrupted()) throw Interrupted{};
      bar.show(double(done) / double(total), "");
    });
  }

  void run_alike(const std::vector<size_t>& alike) {
    std::vector<BenchResult*> results;
    RunNeed need = planned_[alike.front()].need;
    for (const size_t i : alike) {
      results.push_back(&planned_[i].result);
      need = larger(need, planned_[i].need);
    }
    const RunConfig& config = planned_[alike.front()].config;
    keep_on_disk(config.placement.weights.disk > 0);
    try {
      LoadedModel loaded(model_, *device_,
                         fitting_plan(config, sources_, model_, *device_, need, weights_),
                         config.quiet);
      for (const size_t i : alike) note(planned_[i], loaded.plan());
      log::info("{}; ready after {:.2f} s",
                machine_line(model_, loaded, *device_, cache_dtype(config, *device_)),
                loaded.load_seconds());
      log::info("{}", memory_line(loaded.plan()));
      log::info("config {}", config_json(config).dump());
      BenchRun(config, model_, *device_, loaded, need.placed, results).run();
    } catch (const Error& e) {  // memory that was free while planning
      if (e.fault() != Fault::out_of_memory) throw;
      for (BenchResult* r : results) r->misfit = e.what();
    }
  }

  RunConfig config_;
  const Sources sources_;
  Model model_;
  std::optional<Checkpoint> made_;  // the model's, while what was written of it takes its place
  std::vector<BenchCase> cases_;
  std::unique_ptr<Device> device_;
  WeightPlan weights_;
  std::optional<double> bandwidth_;
  std::vector<Planned> planned_;  // of each case
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
  Sweep sweep(config, sources);
  const TraceFile trace(config);
  bool whole = true;
  std::exception_ptr failure;
  try {
    sweep.run();
  } catch (const Interrupted&) {
    whole = false;
  } catch (...) {
    failure = std::current_exception();
  }
  trace.write();
  const auto rows = sweep.rows();
  if (!rows.empty()) write_report(config.bench, sweep.document(rows), rows);
  if (failure) std::rethrow_exception(failure);
  if (!whole)
    log::warning("interrupted; {}",
                 rows.empty() ? "nothing was measured" : "what was measured is shown");
  if (const std::string why = sweep.misfit(); whole && !why.empty())
    fail(Fault::out_of_memory, "{}", why);
  return whole ? 0 : kInterrupted;
}

}  // namespace hydrant
