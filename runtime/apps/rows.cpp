#include "runtime/apps/rows.hpp"

#include <algorithm>
#include <array>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/chat.hpp"
#include "runtime/apps/json_text.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"
#include "runtime/engine/check_request.hpp"

namespace hydrant {
namespace {

constexpr uint64_t kMostTokens = 1 << 24;

// A row's draws are its own, wherever it stands in whichever job: its id takes part (FNV-1a, then
// the finaliser of SplitMix64).
uint64_t seed_of(uint64_t seed, std::string_view id) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  uint64_t mixed = seed + hash;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

std::vector<text::Message> messages_of(const Json& value) {
  std::vector<text::Message> messages;
  if (!value.is_array() || value.empty())
    fail(Fault::bad_input, "messages: must be a non-empty list of {{\"role\", \"content\"}}");
  for (const Json& entry : value) {
    Fields fields(entry);
    const auto role = fields.text("role"), content = fields.text("content");
    fields.finish();
    if (!role || !content)
      fail(Fault::bad_input, "messages[{}]: needs role and content", messages.size());
    messages.push_back({*role, *content});
  }
  return messages;
}

// Exactly one of the keys must be there.
void require_one(int given, const char* keys) {
  if (given != 1) fail(Fault::bad_input, "exactly one of {} is needed, there are {}", keys, given);
}

std::vector<int32_t> prompt_of(Fields& fields, const PromptMaker& maker) {
  const auto text = fields.text("prompt");
  auto ids = fields.ids("prompt_token_ids");
  const Json* messages = fields.any("messages");
  require_one(text.has_value() + ids.has_value() + (messages != nullptr),
              "prompt, prompt_token_ids, messages");
  if (messages) return maker.from_messages(messages_of(*messages));
  if (ids) return std::move(*ids);
  return maker.config.chat ? maker.from_messages({{"user", *text}}) : maker.from_text(*text);
}

// lm-eval's way: the continuation is what the whole text's ids add to the context's.
void pair_of(Fields& fields, const PromptMaker& maker, Request& request) {
  const auto context = fields.text("context"), continuation = fields.text("continuation");
  auto context_ids = fields.ids("context_token_ids"),
       continuation_ids = fields.ids("continuation_token_ids");
  require_one(context.has_value() + context_ids.has_value(), "context, context_token_ids");
  require_one(continuation.has_value() + continuation_ids.has_value(),
              "continuation, continuation_token_ids");
  if (context.has_value() != continuation.has_value())
    fail(Fault::bad_input, "context and continuation must both be texts or both be token ids");
  if (context) {
    request.prompt = maker.from_text(*context);
    request.forced = maker.tokenizer.encode(*context + *continuation, /*add_special=*/true);
    const size_t skipped = std::min(request.prompt.size(), request.forced.size());
    request.forced.erase(request.forced.begin(), request.forced.begin() + ptrdiff_t(skipped));
  } else {
    request.prompt = std::move(*context_ids);
    request.forced = std::move(*continuation_ids);
  }
  if (request.forced.empty()) fail(Fault::bad_input, "continuation: has no tokens");
}

// The text spelled the BOS that the tokenizer puts before it.
void warn_of_doubled_bos(const Job& job, int32_t bos) {
  for (size_t i = 0; i < job.requests.size(); i++) {
    const auto& ids = job.requests[i].prompt;
    if (bos < 0 || ids.size() < 2 || ids[0] != bos || ids[1] != bos) continue;
    log::warning("line {}: the prompt begins with two BOS tokens (id {})",
                 job.lines[job.line_of[i]].number, bos);
    return;  // one line is enough
  }
}

void check_stop_ids(const std::vector<int32_t>& ids, const ModelSpec& spec,
                    const std::string& where, Fault fault) {
  for (const int32_t id : ids)
    if (id >= spec.vocab)
      fail(fault, "{}: must be 0 to {}, the model's vocabulary, not {}", where, spec.vocab - 1, id);
}

// Lines that ask for more tokens than the context has room for.
class CutLines {
 public:
  void note(const InputLine& line, int32_t asked, const Request& request) {
    if (asked <= request.max_new_tokens) return;
    if (count_++ == 0)
      first_ = fmt::format("line {}: max_new_tokens {} is cut to {}: the prompt has {}",
                           line.number, asked, request.max_new_tokens, request.prompt.size());
  }
  void warn(int32_t positions) const {
    if (count_ > 0)
      log::warning("{} of the model's {} positions{}", first_, positions,
                   count_ == 1   ? ""
                   : count_ == 2 ? "; so is 1 more line"
                                 : fmt::format("; so are {} more lines", count_ - 1));
  }

 private:
  size_t count_ = 0;
  std::string first_;
};

Job job_of(std::string_view text, const PromptMaker& maker,
           const std::function<void(const InputLine&, Fields&, Request&,
                                    std::vector<std::string>& stops)>& read) {
  Job job;
  CutLines cut;
  job.lines = read_lines(text, [&](InputLine& line, Fields& fields) {
    Request request;
    std::vector<std::string> stops;
    read(line, fields, request, stops);
    fields.finish();
    const int32_t asked = request.max_new_tokens;
    maker.complete(request);
    cut.note(line, asked, request);
    job.requests.push_back(std::move(request));
    job.stops.push_back(std::move(stops));
    job.line_of.push_back(line.number);
  });
  for (size_t i = 0, line = 0; i < job.requests.size(); i++) {  // number -> index
    while (job.lines[line].number != job.line_of[i]) line++;
    job.line_of[i] = line;
  }
  cut.warn(maker.spec.max_positions);
  warn_of_doubled_bos(job, maker.spec.bos);
  warn_of_few_sinks(maker.cache, job.requests);
  return job;
}

}  // namespace

PromptMaker prompt_maker(const text::Tokenizer& tokenizer, const RunConfig& config,
                         const Sources& sources, const Model& model) {
  check_stop_ids(config.stop_ids, model.spec, sources.name("stop_ids"), Fault::bad_config);
  PromptMaker maker{tokenizer, config, model.spec, cache_choice(config.cache, sources), {}};
  if (config.chat) maker.chat.emplace(chat_source(model.files));
  return maker;
}

std::vector<int32_t> PromptMaker::from_text(std::string_view text) const {
  std::vector<int32_t> ids = tokenizer.encode(text, /*add_special=*/true);
  if (ids.empty())
    fail(Fault::bad_input,
         "an empty prompt, and the tokenizer adds no BOS to begin with: there are no tokens");
  return ids;
}

std::vector<int32_t> PromptMaker::from_messages(std::vector<text::Message> messages) const {
  if (!chat) fail(Fault::bad_input, "messages: need --chat");
  for (size_t i = 0; i < messages.size(); i++)
    if (const std::string& role = messages[i].role; !chat->has_role(role))
      fail(Fault::bad_input, "messages[{}].role: '{}' is none of the chat template's{}", i, role,
           suggestion(role, std::array{"system", "user", "assistant"}));
  if (!config.system.empty() && (messages.empty() || messages.front().role != "system"))
    messages.insert(messages.begin(), {"system", config.system});
  return tokenizer.encode(chat->render(messages), /*add_special=*/false);
}

void PromptMaker::complete(Request& request) const {
  const auto prompt = int64_t(request.prompt.size());
  if (!request.forced.empty())
    request.max_new_tokens = int32_t(request.forced.size());
  else if (cache.positions == policy::Positions::original && prompt <= spec.max_positions)
    // The token after the last position is chosen but not fed.
    request.max_new_tokens =
        int32_t(std::min<int64_t>(request.max_new_tokens, spec.max_positions - prompt + 1));
  request.plans = policy::plan(cache, spec.layers, prompt, request.max_new_tokens);
  request.top_logprobs = config.logprobs;
  request.report_kept = config.report_kept;
  check_request(spec, request);
}

Job generate_job(std::string_view text, const PromptMaker& maker) {
  const RunConfig& config = maker.config;
  return job_of(text, maker,
                [&](const InputLine& line, Fields& fields, Request& request,
                    std::vector<std::string>& stops) {
                  request.prompt = prompt_of(fields, maker);
                  request.max_new_tokens = int32_t(fields.integer("max_new_tokens", 1, kMostTokens)
                                                       .value_or(uint64_t(config.max_new_tokens)));
                  const SamplingConfig& s = config.sampling;
                  const auto seed = fields.integer("seed", 0, UINT64_MAX);
                  request.sampling = {float(s.temperature),
                                      s.top_k,
                                      float(s.top_p),
                                      float(s.min_p),
                                      float(s.repetition_penalty),
                                      seed.value_or(seed_of(config.seed, line.id))};
                  request.stop_ids = fields.ids("stop_ids").value_or(config.stop_ids);
                  check_stop_ids(request.stop_ids, maker.spec, "stop_ids", Fault::bad_input);
                  if (!config.ignore_eos)
                    request.stop_ids.insert(request.stop_ids.end(), maker.spec.eos.begin(),
                                            maker.spec.eos.end());
                  stops = fields.texts("stop").value_or(config.stop);
                });
}

Job generate_job(const PromptMaker& maker, const Sources& sources) {
  const RunConfig& config = maker.config;
  if (!config.prompt) return generate_job(read_input(config.prompts), maker);
  const bool piped = *config.prompt == "-";
  const std::string text = piped ? read_input("-") : *config.prompt;
  require_utf8(text, piped ? "standard input" : sources.name("prompt"));
  Job job = generate_job(Json{{"prompt", text}}.dump(), maker);
  if (job.requests.empty())
    fail(Fault::bad_input, "{}: {}", sources.name("prompt"), job.lines.front().error);
  return job;
}

Job score_job(std::string_view text, const PromptMaker& maker) {
  return job_of(text, maker,
                [&](const InputLine&, Fields& fields, Request& request, std::vector<std::string>&) {
                  pair_of(fields, maker, request);
                });
}

}  // namespace hydrant
