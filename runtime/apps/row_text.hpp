// A row's text while its tokens come.
#pragma once
#include <string>
#include <vector>

#include "runtime/engine/generator.hpp"
#include "runtime/text/stop_matcher.hpp"
#include "runtime/text/stream_decoder.hpp"

namespace hydrant {

// The text after the prompt, up to the first stop string and without the id that ends the row.
class RowText {
 public:
  RowText(const text::Tokenizer& tokenizer, const Request& request,
          const std::vector<std::string>& stops);

  std::string push(int32_t id);  // the text that is certain now; valid UTF-8
  std::string finish();          // the rest; the last call
  bool stopped() const { return stops_.stopped(); }

 private:
  const Request& request_;
  text::StreamDecoder decoder_;
  text::StopMatcher stops_;
};

}  // namespace hydrant
