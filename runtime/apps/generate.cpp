#include <unistd.h>

#include <memory>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/command.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/idle_keys.hpp"
#include "runtime/apps/interrupt.hpp"
#include "runtime/apps/json_text.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/progress.hpp"
#include "runtime/apps/resume.hpp"
#include "runtime/apps/row_text.hpp"
#include "runtime/apps/rows.hpp"
#include "runtime/apps/run_job.hpp"
#include "runtime/apps/trace_file.hpp"
#include "runtime/apps/traffic_meter.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Rows in flight and where finished ones go.
class Writer {
 public:
  Writer(const RunConfig& config, const text::Tokenizer& tokenizer, const Job& job)
      : tokenizer_(tokenizer),
        job_(job),
        streams_(config.prompt.has_value()),
        effective_(row_config(config, Command::generate)),
        texts_(job.requests.size()),
        shown_(job.requests.size()),
        progress_("generating", config.quiet || streams_) {
    if (!streams_ || !config.output.empty())
      rows_ = std::make_unique<Output>(config.output, config.overwrite);
    for (const InputLine& line : job.lines)
      if (!line.error.empty()) write_error(line, line.error);
  }

  bool on_token(size_t row, const TokenChoice& token) {
    if (!texts_[row])
      texts_[row] = std::make_unique<RowText>(tokenizer_, job_.requests[row], job_.stops[row]);
    show(row, texts_[row]->push(token.id));
    tokens_++;
    progress_.show(double(done_) / double(job_.requests.size()),
                   fmt::format("{} of {} rows, {} tokens", done_, job_.requests.size(), tokens_));
    return !texts_[row]->stopped();
  }

  void on_done(size_t row, Completion&& completion) {
    done_++;
    if (texts_[row]) show(row, texts_[row]->finish());
    if (streams_ && texts_[row]) stdout_.write("\n");
    const InputLine& line = job_.lines[job_.line_of[row]];
    if (completion.finish == Finish::failed)
      write_error(line, completion.error);
    else if (completion.finish != Finish::cancelled && rows_)
      rows_->line(row_json(row, line, completion));
    texts_[row].reset();
    shown_[row] = {};
  }

  void close() {
    if (rows_) rows_->close();
  }
  size_t failed() const { return failed_; }

 private:
  void show(size_t row, const std::string& text) {
    if (streams_) stdout_.write(text);
    if (rows_) shown_[row] += text;
  }

  void write_error(const InputLine& line, const std::string& error) {
    failed_++;
    if (streams_) log::warning("{}", error);
    if (!rows_) return;
    OrderedJson json{{"id", OrderedJson::parse(line.id)}, {"line", line.number}, {"error", error}};
    rows_->line(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  }

  std::string row_json(size_t row, const InputLine& line, const Completion& completion) const {
    const Request& request = job_.requests[row];
    OrderedJson json{{"id", OrderedJson::parse(line.id)}, {"prompt_tokens", request.prompt.size()}};
    OrderedJson ids = OrderedJson::array(), logprobs = ids, best = ids;
    for (const TokenChoice& token : completion.tokens) {
      ids.push_back(token.id);
      logprobs.push_back(exact(token.logprob));
      OrderedJson alternatives = OrderedJson::array();
      for (const auto& a : token.best)
        alternatives.push_back({{"id", a.id},
                                {"token", tokenizer_.decode({&a.id, 1}, /*skip_special=*/false)},
                                {"logprob", exact(a.logprob)}});
      best.push_back(std::move(alternatives));
    }
    const bool stopped =
        completion.finish == Finish::stop || (texts_[row] && texts_[row]->stopped());
    json["token_ids"] = std::move(ids);
    json["text"] = shown_[row];
    json["finish_reason"] = stopped ? "stop" : "length";
    json["logprobs"] = std::move(logprobs);
    if (request.top_logprobs > 0) json["top_logprobs"] = std::move(best);
    if (request.report_kept) json["kept"] = completion.kept;
    json["config"] = effective_;
    return json.dump();
  }

  const text::Tokenizer& tokenizer_;
  const Job& job_;
  bool streams_;  // the text of the only row goes to standard output as it comes
  OrderedJson effective_;
  std::vector<std::unique_ptr<RowText>> texts_;
  std::vector<std::string> shown_;  // text so far, of rows in flight
  Output stdout_{""};
  std::unique_ptr<Output> rows_;
  Progress progress_;
  size_t done_ = 0, tokens_ = 0, failed_ = 0;
};

void report_start(const RunConfig& config, const Model& model, const LoadedModel& loaded,
                  const Device& device, const Job& job) {
  log::info("{}; {}", config.chat ? "chat template" : "raw text",
            machine_line(model, loaded, device, cache_dtype(config, device)));
  log::info("{}; ready after {:.2f} s", cache_line(config, job.requests), loaded.load_seconds());
  log::info("{}", memory_line(loaded.plan()));
  // Results carry the configuration whole; beside a text on a terminal what was asked for is
  // enough.
  if (!config.prompt || !::isatty(STDERR_FILENO)) {
    log::info("config {}", effective_config(config, Command::generate).dump());
    return;
  }
  RunConfig asked = config;
  asked.prompt.reset();
  if (loaded.plan().all_on_device()) asked.placement = {};
  log::info("config as by default, but for {}",
            effective_config(asked, Command::generate, Shown::changed).dump());
}

}  // namespace

int run_generate(const RunConfig& config, const Sources& sources) {
  for (const std::string& stop : config.stop) require_utf8(stop, sources.name("stop"));
  const Model model = open_described_model(config, sources);
  const auto tokenizer = open_tokenizer(model.files);
  const PromptMaker maker = prompt_maker(*tokenizer, config, sources, model);
  Job job = generate_job(maker, sources);
  if (config.resume) leave_out_finished(job, config, sources, Command::generate);

  if (job.requests.empty()) {
    Writer writer(config, *tokenizer, job);
    if (job.lines.empty()) log::warning("{}: no lines", input_name(config.prompts));
    writer.close();
    return writer.failed() > 0 ? 1 : 0;
  }
  const auto device = open_device(config);
  const BatchShape shape = batch_shape(config.batch);
  const DType kv_dtype = cache_dtype(config, *device);
  warn_of_idle_groups(config, sources, job.requests.size());
  RunPlan plan = fitting_plan(config, sources, model, *device,
                              run_need(config, model, *device, shape, job.requests));
  const RunConfig effective = placed(config, plan);
  Writer writer(effective, *tokenizer, job);
  LoadedModel loaded(model, *device, std::move(plan), config.quiet);
  Generator generator = loaded.generator(shape, kv_dtype);
  report_start(effective, model, loaded, *device, job);

  const TraceFile trace(effective);
  TrafficMeter traffic(loaded);
  Listener listener;
  listener.on_token = [&](size_t row, const TokenChoice& t) { return writer.on_token(row, t); };
  listener.on_done = [&](size_t row, Completion&& c) { writer.on_done(row, std::move(c)); };
  const JobEnd end = run_job(generator, job.requests, listener);
  writer.close();
  log::info("{}", figures_line(end.figures, int64_t(job.requests.size()),
                               full_kv_bytes(generator, job.requests, shape), loaded.plan()));
  trace.write();
  if (end.interrupted) {  // within a step, of which traffic would have a part
    log::warning("interrupted; {}", kept_after_interrupt(config));
    return kInterrupted;
  }
  traffic.report(end.figures.steps);
  if (writer.failed() > 0) log::warning("{}", failure_line(job.lines, writer.failed()));
  return writer.failed() > 0 ? 1 : 0;
}

}  // namespace hydrant
