#include <cmath>
#include <memory>
#include <optional>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/command.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/idle_keys.hpp"
#include "runtime/apps/interrupt.hpp"
#include "runtime/apps/json_text.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/perplexity.hpp"
#include "runtime/apps/progress.hpp"
#include "runtime/apps/resume.hpp"
#include "runtime/apps/rows.hpp"
#include "runtime/apps/run_job.hpp"
#include "runtime/apps/trace_file.hpp"
#include "runtime/apps/traffic_meter.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson error_row(const InputLine& line, const std::string& error) {
  return {{"id", OrderedJson::parse(line.id)}, {"line", line.number}, {"error", error}};
}

OrderedJson score_row(const InputLine& line, const Request& request, const Completion& scored) {
  OrderedJson logprobs = OrderedJson::array();
  double sum = 0;
  bool greedy = true;
  for (const TokenChoice& token : scored.tokens) {
    logprobs.push_back(exact(token.logprob));
    sum += double(token.logprob);
    greedy = greedy && token.is_greedy;
  }
  return {{"id", OrderedJson::parse(line.id)},
          {"context_tokens", request.prompt.size()},
          {"token_ids", request.forced},
          {"token_logprobs", std::move(logprobs)},
          {"sum_logprob", sum},
          {"is_greedy", greedy}};
}

// The model's run over rows, once it is known that it can be; prints what every run prints.
class Scoring {
 public:
  Scoring(const RunConfig& config, const Sources& sources, const Model& model,
          const std::vector<Request>& requests)
      : model_(model),
        requests_(requests),
        shape_(batch_shape(config.batch)),
        device_(open_device(config)),
        kv_dtype_(cache_dtype(config, *device_)),
        plan_(fitting_plan(config, sources, model, *device_,
                           run_need(config, model, *device_, shape_, requests))),
        config_(placed(config, plan_)) {
    warn_of_idle_groups(config, sources, requests.size());
  }

  const RunConfig& config() const { return config_; }
  // Once.
  JobEnd run(Listener listener) {
    LoadedModel loaded(model_, *device_, std::move(plan_), config_.quiet);
    Generator generator = loaded.generator(shape_, kv_dtype_);
    log::info("{}", machine_line(model_, loaded, *device_, kv_dtype_));
    log::info("{}; ready after {:.2f} s", cache_line(config_, requests_), loaded.load_seconds());
    log::info("{}", memory_line(loaded.plan()));
    log::info("config {}", effective_config(config_, Command::score).dump());

    Progress progress("scoring", config_.quiet);
    size_t judged = 0, all = 0;
    for (const Request& request : requests_) all += request.forced.size();
    listener.on_token = [&](size_t, const TokenChoice&) {
      progress.show(double(++judged) / double(all), fmt::format("{} of {} tokens", judged, all));
      return true;
    };
    const TraceFile trace(config_);
    TrafficMeter traffic(loaded);
    JobEnd end = run_job(generator, requests_, std::move(listener));
    log::info("{}", figures_line(end.figures, int64_t(requests_.size()),
                                 full_kv_bytes(generator, requests_, shape_), loaded.plan()));
    trace.write();
    if (!end.interrupted)  // within a step, of which traffic would have a part
      traffic.report(end.figures.steps);
    else
      log::warning("interrupted; {}", config_.perplexity.empty()
                                          ? kept_after_interrupt(config_)
                                          : "the text was not judged to its end");
    return end;
  }

 private:
  const Model& model_;
  const std::vector<Request>& requests_;
  BatchShape shape_;
  std::unique_ptr<Device> device_;
  DType kv_dtype_;
  RunPlan plan_;
  RunConfig config_;
};

int score_pairs(const RunConfig& config, const Sources& sources, const Model& model,
                const PromptMaker& maker) {
  Job job = score_job(read_input(config.input), maker);
  if (config.resume) leave_out_finished(job, config, sources, Command::score);
  std::optional<Scoring> scoring;
  if (!job.requests.empty()) scoring.emplace(config, sources, model, job.requests);
  Output out(config.output, config.overwrite);
  size_t failed = 0;
  const auto fail_row = [&](const InputLine& line, const std::string& error) {
    failed++;
    out.line(error_row(line, error).dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  };
  for (const InputLine& line : job.lines)
    if (!line.error.empty()) fail_row(line, line.error);
  if (job.lines.empty()) log::warning("{}: no lines", input_name(config.input));

  const OrderedJson effective = row_config(scoring ? scoring->config() : config, Command::score);
  Listener listener;
  listener.on_done = [&](size_t row, Completion&& scored) {
    const InputLine& line = job.lines[job.line_of[row]];
    if (scored.finish == Finish::cancelled) return;
    if (scored.finish == Finish::failed) return fail_row(line, scored.error);
    OrderedJson json = score_row(line, job.requests[row], scored);
    json["config"] = effective;
    out.line(json.dump());
  };
  const bool ended_early = scoring && scoring->run(listener).interrupted;
  out.close();
  if (failed > 0) log::warning("{}", failure_line(job.lines, failed));
  return ended_early ? kInterrupted : failed > 0 ? 1 : 0;
}

int score_text(const RunConfig& config, const Sources& sources, const Model& model,
               const PromptMaker& maker) {
  const std::string text = read_input(config.perplexity);
  require_utf8(text, config.perplexity);
  const std::vector<Request> windows = perplexity_windows(text, maker, sources);
  Scoring scoring(config, sources, model, windows);
  Output out(config.output, config.overwrite);
  double nll = 0;
  int64_t tokens = 0;
  std::string error;
  Listener listener;
  listener.on_done = [&](size_t, Completion&& scored) {
    if (scored.finish == Finish::failed) error = scored.error;
    for (const TokenChoice& token : scored.tokens) nll -= double(token.logprob);
    tokens += int64_t(scored.tokens.size());
  };
  if (scoring.run(listener).interrupted) return kInterrupted;
  if (!error.empty()) fail(Fault::bad_input, "{}: {}", config.perplexity, error);
  const double mean = nll / double(tokens);
  out.line(OrderedJson{{"file", config.perplexity},
                       {"tokens", tokens},
                       {"windows", windows.size()},
                       {"nll", mean},
                       {"perplexity", std::exp(mean)},
                       {"config", OrderedJson(effective_config(scoring.config(), Command::score))}}
               .dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  out.close();
  log::info("{} tokens judged in {} windows: {:.4f} nats per token, perplexity {:.3f}",
            count_text(tokens), windows.size(), mean, std::exp(mean));
  return 0;
}

}  // namespace

int run_score(const RunConfig& config, const Sources& sources) {
  const Model model = open_described_model(config, sources);
  const auto tokenizer = open_tokenizer(model.files);
  const PromptMaker maker = prompt_maker(*tokenizer, config, sources, model);
  return config.perplexity.empty() ? score_pairs(config, sources, model, maker)
                                   : score_text(config, sources, model, maker);
}

}  // namespace hydrant
