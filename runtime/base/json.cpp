#include "runtime/base/json.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace hydrant {
namespace {

constexpr size_t kDeepest = 64, kLongestShown = 60;

// What is wrong, without the library's number of the error and its place, which not all have.
std::string_view detail_of(std::string_view what) {
  const auto skip = [&](std::string_view mark) {
    if (const size_t at = what.find(mark); at != what.npos) what.remove_prefix(at + mark.size());
  };
  skip("] ");
  if (what.starts_with("parse error")) skip(": ");
  return what.substr(0, 300);
}

// "line 3, column 5", or "column 5" of a text of one line; `read` bytes have been read, the last of
// them is the offence.
std::string place(std::string_view text, size_t read) {
  const size_t at = std::min(std::max<size_t>(read, 1) - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const size_t newline = before.rfind('\n');
  const size_t column = at - (newline == before.npos ? 0 : newline + 1) + 1;
  const bool one_line = text.substr(0, text.find_last_not_of("\r\n") + 1).find('\n') == text.npos;
  return one_line ? fmt::format("column {}", column)
                  : fmt::format("line {}, column {}",
                                1 + std::count(before.begin(), before.end(), '\n'), column);
}

[[noreturn]] void fail_at(std::string_view text, size_t read, const std::string& name, Fault fault,
                          const Json::exception& e) {
  fail(fault, "{}not valid JSON at {}: {}", name, place(text, read), detail_of(e.what()));
}

class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, std::string name, Fault fault, Numbers numbers)
      : text_(text), name_(std::move(name)), fault_(fault), numbers_(numbers) {}
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(int64_t value) override { return put(value); }
  bool number_unsigned(uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string& spelling) override {
    return put(numbers_ == Numbers::values ? Json(value) : written_number(spelling));
  }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // no text has one
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& key) override {
    const auto [at, fresh] =
        open_.back()->get_ref<Json::object_t&>().emplace(std::move(key), nullptr);
    if (!fresh) fail(fault_, "{}the key {} occurs twice", name_, shown(at->first));
    member_ = &at->second;
    return true;
  }
  bool parse_error(size_t read, const std::string&, const Json::exception& e) override {
    fail_at(text_, read, name_, fault_, e);
  }

 private:
  Json& put_in(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& outer = *open_.back();
    if (outer.is_object()) return *member_ = std::move(value);
    outer.push_back(std::move(value));
    return outer.back();
  }
  bool put(Json value) {
    put_in(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() > kDeepest) fail(fault_, "{}nested deeper than {} levels", name_, kDeepest);
    open_.push_back(&put_in(std::move(value)));  // stays where it is: only the innermost one grows
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string name_;
  Fault fault_;
  Numbers numbers_;
  Json root_;
  std::vector<Json*> open_;
  Json* member_ = nullptr;  // of the innermost object, whose key came last
};

// Nothing but the syntax.
class Checker final : public nlohmann::json_sax<Json> {
 public:
  Checker(std::string_view text, std::string name, Fault fault)
      : text_(text), name_(std::move(name)), fault_(fault) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(size_t) override { return depth_++ < kDeepest; }
  bool start_array(size_t) override { return depth_++ < kDeepest; }
  bool end_object() override { return depth_-- > 0; }
  bool end_array() override { return depth_-- > 0; }
  bool key(std::string&) override { return true; }
  bool parse_error(size_t read, const std::string&, const Json::exception& e) override {
    fail_at(text_, read, name_, fault_, e);
  }

 private:
  std::string_view text_;
  std::string name_;
  Fault fault_;
  size_t depth_ = 0;
};

std::string before(const std::string& file) { return file.empty() ? "" : file + ": "; }

void show(const Json& value, std::string& to) {
  if (to.size() > kLongestShown) return;
  if (value.is_binary()) {
    to.append(value.get_binary().begin(), value.get_binary().end());
  } else if (value.is_array()) {
    to += '[';
    for (const Json& e : value) {
      if (&e != &value.front()) to += ',';
      show(e, to);
    }
    to += ']';
  } else if (value.is_object()) {
    to += '{';
    for (auto at = value.begin(); at != value.end(); ++at) {
      if (at != value.begin()) to += ',';
      show(at.key(), to);
      to += ':';
      show(*at, to);
    }
    to += '}';
  } else {
    to += value.dump(-1, ' ', true, Json::error_handler_t::replace);
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file, Fault fault, Numbers numbers) {
  Builder builder(text, before(file), fault, numbers);
  try {
    Json::sax_parse(text, &builder);
  } catch (const Error&) {
    check_json(text, file, fault);
    throw;
  }
  return builder.take();
}

void check_json(std::string_view text, const std::string& file, Fault fault) {
  Checker checker(text, before(file), fault);
  Json::sax_parse(text, &checker);
}

Json written_number(std::string_view spelling) {
  return Json::binary(std::vector<uint8_t>(spelling.begin(), spelling.end()));
}

bool is_number(const Json& value) { return value.is_number() || value.is_binary(); }

double number_of(const Json& value) {
  if (!value.is_binary()) return value.get<double>();
  const Json::binary_t& spelling = value.get_binary();
  const auto* begin = reinterpret_cast<const char*>(spelling.data());
  double number = 0;
  std::from_chars(begin, begin + spelling.size(), number);
  return number;
}

std::string shown(const Json& value) {
  std::string text;
  show(value, text);
  if (text.size() > kLongestShown) text = text.substr(0, kLongestShown - 3) + "...";
  return text;
}

}  // namespace hydrant
