// Lines of input -> rows of a job.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/budget.hpp"
#include "runtime/apps/assemble.hpp"
#include "runtime/apps/input.hpp"
#include "runtime/text/chat_template.hpp"

namespace hydrant {

// What makes prompts of texts: the same for all rows.
struct PromptMaker {
  const text::Tokenizer& tokenizer;
  const RunConfig& config;
  const ModelSpec& spec;
  policy::Choice cache;
  std::optional<text::ChatTemplate> chat;

  // Throws bad_input for an empty text without a BOS.
  std::vector<int32_t> from_text(std::string_view text) const;
  std::vector<int32_t> from_messages(std::vector<text::Message> messages) const;
  // Completes a request whose prompt and max_new_tokens (or forced) stand: plans, sampling, limits.
  // Throws bad_input when the model cannot run it.
  void complete(Request& request) const;
};
// Opens the chat template when the configuration asks for it.
PromptMaker prompt_maker(const text::Tokenizer& tokenizer, const RunConfig& config,
                         const Sources& sources, const Model& model);

// The rows that can run, and for each its line.
struct Job {
  std::vector<InputLine> lines;
  std::vector<Request> requests;
  std::vector<size_t> line_of;                  // [request]: index in lines
  std::vector<std::vector<std::string>> stops;  // [request]
};

// {"id", "prompt" | "prompt_token_ids" | "messages", "max_new_tokens", "stop", "stop_ids", "seed"}
Job generate_job(std::string_view text, const PromptMaker& maker);
// The same, of what `prompt` or `prompts` names. Throws bad_input when the only prompt cannot run.
Job generate_job(const PromptMaker& maker, const Sources& sources);
// {"id", "context" | "context_token_ids", "continuation" | "continuation_token_ids"}
Job score_job(std::string_view text, const PromptMaker& maker);

}  // namespace hydrant
