// The components that a tokenizer.json describes. All throw bad_file, naming file and JSON path,
// for a type, an option or an order of steps that is not supported; null means there is no such
// part.
#pragma once
#include "runtime/text/decoder.hpp"
#include "runtime/text/json_view.hpp"
#include "runtime/text/normalizer.hpp"
#include "runtime/text/pipeline.hpp"
#include "runtime/text/pre_tokenizer.hpp"

namespace hydrant::text {

Normalizer read_normalizer(const JsonView& json);
PreTokenizer read_pre_tokenizer(const JsonView& json);
Frame read_post_processor(const JsonView& json);
Decoder read_decoder(const JsonView& json);

// {"String": "x"} or {"Regex": "x"}.
Pattern read_pattern(const JsonView& json);
// The one character that a field must be.
std::string read_character(const JsonView& json);
[[noreturn]] void refuse_type(const JsonView& json, std::string_view known);

// GPT-2's words: contractions, letters, digits and other characters, each with a space before it.
Pattern gpt2_words();

}  // namespace hydrant::text
