#include "runtime/text/tokenizer_file.hpp"

#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"

namespace hydrant::text {
namespace {

constexpr size_t kDeepest = 64;

// Builds the document in one pass. The vocabulary and the merges, 99 % of the file, go straight
// into their tables: as JSON values they would cost most of the loading time.
class Reader {
 public:
  explicit Reader(TokenizerFile& file) : file_(file) {}

  bool null() { return scalar(Json()); }
  bool boolean(bool value) { return scalar(Json(value)); }
  bool number_float(double value, const std::string&) { return scalar(Json(value)); }
  bool number_integer(int64_t value) { return scalar(Json(value)); }
  bool number_unsigned(uint64_t value) {
    if (table_ != Table::vocabulary) return scalar(Json(value));
    if (open_.size() != table_depth_) return bad_entry();
    if (value > uint64_t(kHighestId)) {
      fail(Fault::bad_file, "{}: model.vocab: the id of \"{}\" is {}, the highest allowed is {}",
           file_.path, key_, value, kHighestId);
    }
    if (!file_.vocabulary.add(key_, int32_t(value))) {
      fail(Fault::bad_file, "{}: model.vocab: the token \"{}\" or its id {} is there twice",
           file_.path, key_, value);
    }
    return true;
  }
  bool string(std::string& value) {
    if (table_ != Table::merges) return scalar(Json(std::move(value)));
    if (open_.size() == table_depth_ + 1) {  // ["a", "b"]
      if (parts_ == 2) return bad_entry();
      ++parts_;
      file_.merges.add(value);
      return true;
    }
    const std::string_view pair = value;  // "a b"
    const size_t space = pair.find(' ');
    if (space == std::string_view::npos || pair.find(' ', space + 1) != std::string_view::npos) {
      return bad_entry();
    }
    file_.merges.add(pair.substr(0, space));
    file_.merges.add(pair.substr(space + 1));
    return true;
  }
  bool binary(Json::binary_t&) { return bad_entry(); }
  bool key(std::string& value) {
    key_ = std::move(value);
    return true;
  }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t, const std::string&, const Json::exception&) { return false; }

 private:
  enum class Table { none, vocabulary, merges };

  [[noreturn]] bool bad_entry() {
    if (table_ == Table::merges) {
      fail(Fault::bad_file, "{}: model.merges[{}]: expected two tokens, \"a b\" or [\"a\", \"b\"]",
           file_.path, file_.merges.count() - (parts_ == 2 ? 1 : 0));
    }
    fail(Fault::bad_file, "{}: model.vocab: the id of \"{}\" is not a whole number from 0 to {}",
         file_.path, key_, kHighestId);
  }

  Json* place(Json&& value) {
    if (open_.empty()) {
      *file_.rest = std::move(value);
      return file_.rest.get();
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    Json& member = parent[key_];
    member = std::move(value);
    return &member;
  }

  bool scalar(Json&& value) {
    if (table_ != Table::none) return bad_entry();
    place(std::move(value));
    return true;
  }

  bool open(Json&& value) {
    if (open_.size() >= kDeepest) {
      fail(Fault::bad_file, "{}: nested more than {} levels deep", file_.path, kDeepest);
    }
    if (table_ == Table::merges && value.is_array() && open_.size() == table_depth_) {
      parts_ = 0;
      open_.push_back(nullptr);
      return true;
    }
    if (table_ != Table::none) return bad_entry();
    const bool in_model = open_.size() == 2 && open_.back() == model_;
    const bool starts_model = open_.size() == 1 && key_ == "model" && value.is_object();
    const bool object = value.is_object();
    Json* const placed = place(std::move(value));
    if (starts_model) model_ = placed;
    open_.push_back(placed);
    if (in_model && key_ == "vocab" && object) start(Table::vocabulary, file_.has_vocabulary);
    if (in_model && key_ == "merges" && !object) start(Table::merges, file_.has_merges);
    return true;
  }

  void start(Table table, bool& seen) {
    if (seen) fail(Fault::bad_file, "{}: model.{} is there twice", file_.path, key_);
    seen = true;
    table_ = table;
    table_depth_ = open_.size();
  }

  bool close() {
    if (table_ == Table::merges && open_.size() == table_depth_ + 1 && parts_ != 2) {
      return bad_entry();
    }
    if (table_ != Table::none && open_.size() == table_depth_) table_ = Table::none;
    parts_ = 0;
    open_.pop_back();
    return true;
  }

  TokenizerFile& file_;
  std::vector<Json*> open_;  // the path to the current value
  const Json* model_ = nullptr;
  std::string key_;
  Table table_ = Table::none;
  size_t table_depth_ = 0;  // of the table itself
  int parts_ = 0;           // of the current pair
};

}  // namespace

void MergeList::add(std::string_view part) {
  bytes_ += part;
  ends_.push_back(bytes_.size());
}

TokenizerFile::TokenizerFile() : rest(std::make_unique<Json>()) {}
TokenizerFile::TokenizerFile(TokenizerFile&&) noexcept = default;
TokenizerFile::~TokenizerFile() = default;

TokenizerFile parse_tokenizer_file(std::string_view json, const std::string& path) {
  TokenizerFile file;
  file.path = path;
  Reader reader(file);
  try {
    if (!Json::sax_parse(json, &reader)) check_json(json, path);
  } catch (const Error&) {
    check_json(json, path);
    throw;
  }
  if (!file.rest->is_object()) fail(Fault::bad_file, "{}: expected a JSON object", path);
  return file;
}

TokenizerFile read_tokenizer_file(const std::string& path) {
  return parse_tokenizer_file(read_text(path), path);
}

}  // namespace hydrant::text
