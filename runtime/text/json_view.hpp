// A value in a JSON file together with its path, so that every message names both.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hydrant::text {

// Refers to a document that must outlive it. All throw bad_file "FILE: PATH: ..." for a value that
// is missing or of another type.
class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  bool is_null() const;
  bool is_array() const;
  bool is_object() const;
  // A member; for one that is not there or null, a null value.
  JsonView member(std::string_view key) const;
  size_t elements() const;  // of an array
  JsonView element(size_t index) const;
  template <class F>
  void for_each(F f) const {
    for (size_t i = 0; i < elements(); ++i) f(element(i));
  }

  std::string string() const;
  std::optional<std::string> optional_string() const;   // nothing: null
  bool boolean(std::optional<bool> absent = {}) const;  // `absent`: what null means
  int64_t integer(int64_t least, int64_t most, std::optional<int64_t> absent = {}) const;

  std::string where() const;  // "FILE: PATH"
  [[noreturn]] void fail(std::string_view what) const;

 private:
  [[noreturn]] void wrong(std::string_view wanted) const;

  const nlohmann::json* value_;
  std::string file_, path_;
};

}  // namespace hydrant::text
