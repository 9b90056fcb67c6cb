// Token ids -> text while they come.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/text/tokenizer.hpp"

namespace hydrant::text {

// The text that follows a prompt: decode(prompt + ids) without decode(prompt), so SentencePiece's
// first word keeps its space. Every chunk is valid UTF-8; what can still change (an incomplete
// character, a run of byte tokens) is held back. The tokenizer must outlive the decoder.
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                bool skip_special = true);

  std::string push(int32_t id);  // the text that is certain now; may be empty
  std::string finish();          // what was still held back; the last call

 private:
  void close_run(std::string& out);
  void append(std::string& out, std::string_view bytes);

  const Tokenizer& tokenizer_;
  bool skip_special_;
  bool first_ = true;            // no token has been decoded yet
  std::string run_;              // the current run of byte tokens
  size_t run_of_prompt_ = 0;     // so many of them belong to the prompt
  std::string tail_;             // an incomplete character
  bool tail_of_prompt_ = false;  // it began in the prompt
};

// All of it at once: equal to the joined chunks.
std::string text_after(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       std::span<const int32_t> ids);

}  // namespace hydrant::text
