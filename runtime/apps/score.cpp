#include <cmath>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/command.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/interrupt.hpp"
#include "runtime/apps/json_text.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/perplexity.hpp"
#include "runtime/apps/progress.hpp"
#include "runtime/apps/resume.hpp"
#include "runtime/apps/rows.hpp"
#include "runtime/apps/run_job.hpp"
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

// Loads the model and runs the rows; prints what every run prints.
JobEnd run_scoring(const RunConfig& config, const Model& model,
                   const std::vector<Request>& requests, Listener listener) {
  const auto device = open_device(config);
  LoadedModel loaded(model, *device, config);
  const BatchShape shape = batch_shape(config.batch);
  Generator generator = loaded.generator(shape, cache_dtype(config));
  log::info("{}", machine_line(model, loaded, *device, cache_dtype(config)));
  log::info("{}; ready after {:.2f} s", cache_line(config, requests), loaded.load_seconds());
  log::info("config {}", effective_config(config, Command::score).dump());

  Progress progress("scoring", config.quiet);
  size_t judged = 0, all = 0;
  for (const Request& request : requests) all += request.forced.size();
  listener.on_token = [&](size_t, const TokenChoice&) {
    progress.show(double(++judged) / double(all), fmt::format("{} of {} tokens", judged, all));
    return true;
  };
  JobEnd end = run_job(generator, requests, std::move(listener));
  log::info("{}", figures_line(end.figures, int64_t(requests.size()),
                               full_kv_bytes(generator, requests, shape)));
  if (end.interrupted)
    log::warning("interrupted; {}", config.perplexity.empty()
                                        ? kept_after_interrupt(config)
                                        : "the text was not judged to its end");
  return end;
}

int score_pairs(const RunConfig& config, const Sources& sources, const Model& model,
                const PromptMaker& maker) {
  Job job = score_job(read_input(config.input), maker);
  if (config.resume) leave_out_finished(job, config, sources, Command::score);
  Output out(config.output, config.overwrite);
  size_t failed = 0;
  const auto fail_row = [&](const InputLine& line, const std::string& error) {
    failed++;
    out.line(error_row(line, error).dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  };
  for (const InputLine& line : job.lines)
    if (!line.error.empty()) fail_row(line, line.error);
  if (job.lines.empty()) log::warning("{}: no lines", config.input);

  const OrderedJson effective = row_config(config, Command::score);
  Listener listener;
  listener.on_done = [&](size_t row, Completion&& scored) {
    const InputLine& line = job.lines[job.line_of[row]];
    if (scored.finish == Finish::cancelled) return;
    if (scored.finish == Finish::failed) return fail_row(line, scored.error);
    OrderedJson json = score_row(line, job.requests[row], scored);
    json["config"] = effective;
    out.line(json.dump());
  };
  const bool ended_early =
      !job.requests.empty() && run_scoring(config, model, job.requests, listener).interrupted;
  out.close();
  if (failed > 0) log::warning("{}", failure_line(job.lines, failed));
  return ended_early ? kInterrupted : failed > 0 ? 1 : 0;
}

int score_text(const RunConfig& config, const Sources& sources, const Model& model,
               const PromptMaker& maker) {
  const std::string text = read_input(config.perplexity);
  require_utf8(text, config.perplexity);
  const std::vector<Request> windows = perplexity_windows(text, maker, sources);
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
  if (run_scoring(config, model, windows, listener).interrupted) return kInterrupted;
  if (!error.empty()) fail(Fault::bad_input, "{}: {}", config.perplexity, error);
  const double mean = nll / double(tokens);
  out.line(OrderedJson{{"file", config.perplexity},
                       {"tokens", tokens},
                       {"windows", windows.size()},
                       {"nll", mean},
                       {"perplexity", std::exp(mean)},
                       {"config", OrderedJson(effective_config(config, Command::score))}}
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
