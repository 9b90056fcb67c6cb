#include "runtime/text/jinja/values.hpp"

#include <algorithm>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant::text::jinja {
namespace {

constexpr std::string_view kSpaces = " \t\n\r\v\f";

[[noreturn]] void unsupported(std::string what) { throw Unsupported{std::move(what)}; }

std::string stripped(std::string_view text, std::string_view what, bool left, bool right) {
  if (left) text.remove_prefix(std::min(text.find_first_not_of(what), text.size()));
  if (right) text = text.substr(0, text.find_last_not_of(what) + 1);
  return std::string(text);
}

std::string with_case(std::string text, int (*change)(int)) {
  for (char& c : text) {
    if (uint8_t(c) < 0x80) c = char(change(uint8_t(c)));
  }
  return text;
}

bool contains(const Value& where, const Value& what) {
  if (where.is_string() && what.is_string()) {
    return where.get_ref<const std::string&>().find(what.get_ref<const std::string&>()) !=
           std::string::npos;
  }
  if (where.is_object()) return what.is_string() && where.contains(what.get<std::string>());
  if (where.is_array()) return std::find(where.begin(), where.end(), what) != where.end();
  unsupported("\"in\" on this kind of value");
}

const std::string& text_of(const Value& value, std::string_view operation) {
  if (!value.is_string()) unsupported(fmt::format("{} of something that is no text", operation));
  return value.get_ref<const std::string&>();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (from.empty()) unsupported("replace of an empty text");
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Value split(const std::string& text, const std::string& at) {
  if (at.empty()) unsupported("split at an empty text");
  Value out = Value::array();
  size_t from = 0;
  for (size_t i = text.find(at); i != std::string::npos; i = text.find(at, from)) {
    out.push_back(text.substr(from, i - from));
    from = i + at.size();
  }
  out.push_back(text.substr(from));
  return out;
}

}  // namespace

bool is_true(const Value& value) {
  switch (value.type()) {
    case Value::value_t::boolean:
      return value.get<bool>();
    case Value::value_t::number_integer:
    case Value::value_t::number_unsigned:
      return value.get<int64_t>() != 0;
    case Value::value_t::string:
      return !value.get_ref<const std::string&>().empty();
    case Value::value_t::array:
    case Value::value_t::object:
      return !value.empty();
    default:
      return false;  // none, undefined
  }
}

std::string to_text(const Value& value) {
  if (value.is_string()) return value.get<std::string>();
  if (is_undefined(value)) return "";
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  unsupported("printing a list or a dictionary");
}

Value member(const Value& of, const Value& key) {
  if (is_undefined(of)) unsupported(fmt::format("a part of an undefined value: {}", to_text(key)));
  if (of.is_object() && key.is_string()) {
    const auto found = of.find(key.get_ref<const std::string&>());
    return found == of.end() ? undefined() : *found;
  }
  if (of.is_array() && key.is_number_integer()) {
    const int64_t index = key.get<int64_t>() + (key.get<int64_t>() < 0 ? int64_t(of.size()) : 0);
    return index < 0 || index >= int64_t(of.size()) ? undefined() : of[size_t(index)];
  }
  return undefined();
}

Value slice(const Value& of, const Value& first, const Value& last) {
  if (!of.is_array()) unsupported("a slice of something that is no list");
  const int64_t size = int64_t(of.size());
  const auto place = [&](const Value& bound, int64_t absent) {
    if (bound.is_null()) return absent;
    if (!bound.is_number_integer()) unsupported("a slice without whole numbers");
    const int64_t n = bound.get<int64_t>();
    return std::clamp(n < 0 ? n + size : n, int64_t{0}, size);
  };
  const int64_t from = place(first, 0), to = std::max(place(last, size), from);
  return Value(std::vector<Value>(of.begin() + from, of.begin() + to));
}

Value binary(std::string_view op, const Value& left, const Value& right) {
  if (op == "==") return left == right || (is_undefined(left) && is_undefined(right));
  if (op == "!=") return !is_true(binary("==", left, right));
  if (op == "in") return contains(right, left);
  if (op == "~") return to_text(left) + to_text(right);
  if (op == "+" && left.is_string() && right.is_string()) return to_text(left) + to_text(right);
  if (op == "+" && left.is_array() && right.is_array()) {
    Value out = left;
    out.insert(out.end(), right.begin(), right.end());
    return out;
  }
  if (left.is_number_integer() && right.is_number_integer()) {
    const int64_t a = left.get<int64_t>(), b = right.get<int64_t>();
    if (std::abs(a) > INT32_MAX || std::abs(b) > INT32_MAX) unsupported("large numbers");
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (op == "%" && b > 0) return (a % b + b) % b;
    if (op == "//" && b > 0) return (a - (a % b + b) % b) / b;
    if (op == "<") return a < b;
    if (op == ">") return a > b;
    if (op == "<=") return a <= b;
    if (op == ">=") return a >= b;
  }
  unsupported(fmt::format("\"{}\" between these values", op));
}

bool test(std::string_view name, const Value& value, const std::vector<Value>& arguments) {
  if (name == "defined") return !is_undefined(value);
  if (name == "undefined") return is_undefined(value);
  if (name == "none") return value.is_null();
  if (name == "string") return value.is_string();
  if (name == "mapping") return value.is_object();
  if (name == "iterable") return value.is_string() || value.is_array() || value.is_object();
  if (name == "sequence") return value.is_string() || value.is_array() || value.is_object();
  if (name == "boolean") return value.is_boolean();
  if (name == "number") return value.is_number();
  if (name == "integer") return value.is_number_integer();
  if (name == "true") return value == Value(true);
  if (name == "false") return value == Value(false);
  if (name == "even" && value.is_number_integer()) return value.get<int64_t>() % 2 == 0;
  if (name == "odd" && value.is_number_integer()) return value.get<int64_t>() % 2 != 0;
  if (name == "equalto" && arguments.size() == 1) return value == arguments[0];
  if (name == "in" && arguments.size() == 1) return contains(arguments[0], value);
  unsupported(fmt::format("the test \"{}\"", name));
}

Value filter(std::string_view name, const Value& value, const std::vector<Value>& arguments) {
  const size_t count = arguments.size();
  if (name == "trim" && count == 0) return stripped(to_text(value), kSpaces, true, true);
  if (name == "upper" && count == 0) return with_case(to_text(value), std::toupper);
  if (name == "lower" && count == 0) return with_case(to_text(value), std::tolower);
  if (name == "string" && count == 0) return to_text(value);
  if (name == "safe" && count == 0) return value;
  if ((name == "length" || name == "count") && count == 0 && value.is_structured()) {
    return int64_t(value.size());
  }
  if ((name == "first" || name == "last") && count == 0 && value.is_array()) {
    if (value.empty()) return undefined();
    return name == "first" ? value.front() : value.back();
  }
  if (name == "list" && count == 0 && value.is_array()) return value;
  if (name == "default" && count >= 1 && count <= 2) {
    const bool also_false = count == 2 && is_true(arguments[1]);
    return is_undefined(value) || (also_false && !is_true(value)) ? arguments[0] : value;
  }
  if (name == "replace" && count == 2) {
    return replaced(to_text(value), to_text(arguments[0]), to_text(arguments[1]));
  }
  if (name == "join" && count <= 1 && value.is_array()) {
    std::string out;
    for (size_t i = 0; i < value.size(); ++i) {
      if (i != 0 && count == 1) out += to_text(arguments[0]);
      out += to_text(value[i]);
    }
    return out;
  }
  unsupported(fmt::format("the filter \"{}\" with {} arguments", name, count));
}

Value method(std::string_view name, const Value& of, const std::vector<Value>& arguments) {
  const size_t count = arguments.size();
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const std::string what = count == 1 ? to_text(arguments[0]) : std::string(kSpaces);
    if (count <= 1) return stripped(text_of(of, name), what, name != "rstrip", name != "lstrip");
  }
  if (name == "upper" && count == 0) return with_case(text_of(of, name), std::toupper);
  if (name == "lower" && count == 0) return with_case(text_of(of, name), std::tolower);
  if (name == "startswith" && count == 1) {
    return text_of(of, name).starts_with(text_of(arguments[0], name));
  }
  if (name == "endswith" && count == 1) {
    return text_of(of, name).ends_with(text_of(arguments[0], name));
  }
  if (name == "replace" && count == 2) {
    return replaced(text_of(of, name), text_of(arguments[0], name), text_of(arguments[1], name));
  }
  if (name == "split" && count == 1) return split(text_of(of, name), text_of(arguments[0], name));
  if (name == "get" && (count == 1 || count == 2) && of.is_object()) {
    Value found = member(of, arguments[0]);
    if (!is_undefined(found)) return found;
    return count == 2 ? arguments[1] : Value();
  }
  unsupported(fmt::format("the method \"{}\" with {} arguments", name, count));
}

Value undefined() { return Value(Value::value_t::discarded); }
bool is_undefined(const Value& value) { return value.is_discarded(); }

}  // namespace hydrant::text::jinja
