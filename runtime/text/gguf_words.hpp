// How byte-level GGUF models cut a text into words, by the names that GGUF has for it.
#pragma once
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer.hpp"

namespace hydrant::text {

struct GgufWords {
  std::string_view name;
  std::vector<std::string_view> expressions;  // applied in turn
  bool ignore_merges = false, adds_bos = false;
};

// Throws bad_file for an unknown tokenizer.ggml.pre, with the known ones.
const GgufWords& gguf_words(const GgufVocabulary& file);

}  // namespace hydrant::text
