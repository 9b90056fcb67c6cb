#include "runtime/text/stream_decoder.hpp"

#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

void append_replacements(std::string& out, size_t count) {
  for (size_t i = 0; i < count; ++i) out += kReplacement;
}

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                             bool skip_special)
    : tokenizer_(tokenizer), skip_special_(skip_special) {
  for (const int32_t id : prompt) push(id);
  run_of_prompt_ = run_.size();
  tail_of_prompt_ = !tail_.empty();
}

std::string StreamDecoder::push(int32_t id) {
  std::string bytes = tokenizer_.bytes_of(id, first_, skip_special_);
  if (first_) first_ = tokenizer_.bytes_of(id, false, skip_special_).empty();
  std::string out;
  if (bytes.empty()) return out;  // a special token does not end a run of bytes
  if (tokenizer_.is_byte(id)) {
    run_ += bytes;
    return out;
  }
  close_run(out);
  append(out, bytes);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  close_run(out);
  if (!tail_.empty() && !tail_of_prompt_) out += kReplacement;
  tail_.clear();
  return out;
}

// A run that began in the prompt is judged with the prompt's part. Where the new bytes mend or
// break what the prompt's text already shows, there is no exact answer: they become U+FFFD.
void StreamDecoder::close_run(std::string& out) {
  const std::string_view old = std::string_view(run_).substr(0, run_of_prompt_);
  const std::string_view added = std::string_view(run_).substr(run_of_prompt_);
  if (is_utf8(run_) && is_utf8(old)) {
    out += added;
  } else {
    append_replacements(out, added.size());
  }
  run_.clear();
  run_of_prompt_ = 0;
}

void StreamDecoder::append(std::string& out, std::string_view bytes) {
  const size_t old = tail_of_prompt_ ? tail_.size() : 0;
  tail_ += bytes;
  std::string text;
  const size_t kept = append_repaired(text, tail_, true);
  if (old != 0 && kept < tail_.size()) {
    // The first character began in the prompt, whose text ends with U+FFFD for it. Still broken:
    // that one stands for it. Completed: what is new of it is shown as broken, too.
    tail_of_prompt_ = false;
    if (text.starts_with(kReplacement)) {
      text.erase(0, kReplacement.size());
    } else {
      text.replace(0, character_at(text, 0).size, kReplacement);
    }
  }
  out += text;
  tail_.erase(0, tail_.size() - kept);
}

std::string text_after(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       std::span<const int32_t> ids) {
  StreamDecoder decoder(tokenizer, prompt);
  std::string out;
  for (const int32_t id : ids) out += decoder.push(id);
  return out += decoder.finish();
}

}  // namespace hydrant::text
