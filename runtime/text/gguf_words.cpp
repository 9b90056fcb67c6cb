#include "runtime/text/gguf_words.hpp"

#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant::text {
namespace {

constexpr std::string_view kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kLlama3 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kQwen2 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

const std::vector<GgufWords>& known_pre() {
  static const std::vector<GgufWords> all = {
      {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", kGpt2, "\\p{N}+", "[0-9][0-9][0-9]"}},
      {"gpt-2", {kGpt2}},
      {"gpt2", {kGpt2}},
      {"gpt-neox", {kGpt2}},
      {"olmo", {kGpt2}},
      {"mpt", {kGpt2}},
      {"phi-2", {kGpt2}},
      {"jais", {kGpt2}},
      {"llama-bpe", {kLlama3}, true, true},
      {"llama3", {kLlama3}, true, true},
      {"llama-v3", {kLlama3}, true, true},
      {"falcon3", {kLlama3}, true, true},
      {"dbrx", {kLlama3}},
      {"smaug-bpe", {kLlama3}},
      {"smollm", {"\\p{N}", kGpt2}},
      {"starcoder", {"\\p{N}", kGpt2}},
      {"refact", {"\\p{N}", kGpt2}},
      {"command-r", {"\\p{N}", kGpt2}},
      {"codeshell", {"\\p{N}", kGpt2}},
      {"exaone", {"\\p{N}", kGpt2}},
      {"qwen2", {kQwen2}},
      {"stablelm2", {kQwen2}},
  };
  return all;
}

}  // namespace

const GgufWords& gguf_words(const GgufVocabulary& file) {
  std::string_view name = file.pre;
  if (name.empty()) {
    log::warning("{}: tokenizer.ggml.pre is missing; splitting words as \"default\"", file.file);
    name = "default";
  }
  std::string known;
  for (const GgufWords& pre : known_pre()) {
    if (pre.name == name) return pre;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", pre.name);
  }
  fail(Fault::bad_file, "{}: tokenizer.ggml.pre: \"{}\" is not supported; known: {}", file.file,
       name, known);
}

}  // namespace hydrant::text
