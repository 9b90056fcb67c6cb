// What users hand in: texts and lines of JSON.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace hydrant {

// All of a file, pipe or, for "-", standard input. Throws bad_input when it cannot be read.
std::string read_input(const std::string& path);
std::string input_name(const std::string& path);  // in messages

// Throws bad_input "WHAT: ... byte N" where `text` is not UTF-8.
void require_utf8(std::string_view text, const std::string& what);

// One JSON object of a line. Every getter notes its key as known; the fields that nobody asked for
// are refused by finish(). All throw bad_input naming the key.
class Fields {
 public:
  explicit Fields(const nlohmann::json& object);
  std::optional<std::string> text(const char* key);
  std::optional<std::vector<std::string>> texts(const char* key);
  std::optional<std::vector<int32_t>> ids(const char* key);
  std::optional<uint64_t> integer(const char* key, uint64_t low, uint64_t high);
  std::optional<bool> toggle(const char* key);
  const nlohmann::json* any(const char* key);  // null: not there
  void finish() const;

 private:
  const nlohmann::json& object_;
  std::vector<std::string> known_;
};

// A line of input and the id that the row of its answer will bear.
struct InputLine {
  size_t number = 0;  // from 1
  std::string id;     // JSON text: what the line says, else its number; null: not one of its own
  std::string error;  // not empty: why the line cannot be used; its number is not in it
};

// Reads each line that is not blank: `use` gets the line and its fields, and what it throws as
// bad_input becomes the line's error, as do text that is not a JSON object and an id that another
// line has, be it that line's number.
std::vector<InputLine> read_lines(std::string_view text,
                                  const std::function<void(InputLine&, Fields&)>& use);

// "3 of 20 lines failed; line 2: prompt: must be ...": one line for the end of a run.
std::string failure_line(const std::vector<InputLine>& lines, size_t failed);

}  // namespace hydrant
