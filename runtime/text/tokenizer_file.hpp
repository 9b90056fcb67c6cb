// tokenizer.json as parsed: its two long tables apart from the rest.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/vocabulary.hpp"

namespace hydrant::text {

// The strings of model.merges, two a merge, in one block of memory.
class MergeList {
 public:
  void add(std::string_view part);
  size_t count() const { return ends_.size() / 2; }
  std::string_view left(size_t merge) const { return part(2 * merge); }
  std::string_view right(size_t merge) const { return part(2 * merge + 1); }

 private:
  std::string_view part(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  std::string bytes_;
  std::vector<size_t> ends_;
};

struct TokenizerFile {
  std::string path;
  std::unique_ptr<nlohmann::json> rest;  // an object, without model.vocab and model.merges
  Vocabulary vocabulary;
  MergeList merges;
  bool has_vocabulary = false, has_merges = false;  // as an object, as an array

  TokenizerFile();
  TokenizerFile(TokenizerFile&&) noexcept;
  ~TokenizerFile();
};

// Throws bad_file for what is no JSON object, is nested too deeply, or whose tables hold anything
// but whole numbers and pairs of strings.
TokenizerFile read_tokenizer_file(const std::string& path);
TokenizerFile parse_tokenizer_file(std::string_view json, const std::string& path);

}  // namespace hydrant::text
