// Jinja's values and what can be done to them, apart from variables. JSON's types are enough; the
// undefined value is JSON's "discarded".
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hydrant::text::jinja {

using Value = nlohmann::json;

Value undefined();
bool is_undefined(const Value& value);
bool is_true(const Value& value);

// All throw Unsupported, for the caller to say where.
struct Unsupported {
  std::string what;
};
std::string to_text(const Value& value);
Value member(const Value& of, const Value& key);  // undefined: not there
Value slice(const Value& of, const Value& first, const Value& last);
Value binary(std::string_view op, const Value& left, const Value& right);
bool test(std::string_view name, const Value& value, const std::vector<Value>& arguments);
Value filter(std::string_view name, const Value& value, const std::vector<Value>& arguments);
Value method(std::string_view name, const Value& of, const std::vector<Value>& arguments);

}  // namespace hydrant::text::jinja
