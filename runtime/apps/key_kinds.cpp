#include "runtime/apps/key_kinds.hpp"

#include <charconv>

namespace hydrant::kinds {

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

void refuse(const Json& value, const std::string& rule, const std::string& where) {
  fail(Fault::bad_config, "{}: must be {}, not {}", where, rule, shown(value));
}

Json number_or_text(const std::string& text) {
  const char *begin = text.data(), *end = begin + text.size();
  const auto whole = [&](auto value) -> Json {
    const auto [stop, error] = std::from_chars(begin, end, value);
    return error == std::errc() && stop == end ? Json(value) : Json();
  };
  if (Json unsigned_value = whole(uint64_t{}); !unsigned_value.is_null()) return unsigned_value;
  if (Json signed_value = whole(int64_t{}); !signed_value.is_null()) return signed_value;
  const Json real = whole(double{});
  return !real.is_null() && std::isfinite(real.get<double>()) ? real : Json(text);
}

Json comma_list(const std::vector<std::string>& texts, bool numbers) {
  Json list = Json::array();
  for (const std::string& text : texts)
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      list.push_back(numbers ? number_or_text(part) : Json(part));
      begin = end + 1;
    }
  return list;
}

uint64_t integer_of(const Json& value, uint64_t low, uint64_t high, const std::string& rule,
                    const std::string& where) {
  if (!value.is_number_unsigned() && !(value.is_number_integer() && value.get<int64_t>() >= 0))
    refuse(value, rule, where);
  const uint64_t v = value.get<uint64_t>();
  if (v < low || v > high) refuse(value, rule, where);
  return v;
}

std::string text_of(const Json& value, const std::string& rule, const std::string& where) {
  if (!value.is_string()) refuse(value, rule, where);
  std::string text = value.get<std::string>();
  if (text.find('\0') != std::string::npos) refuse(value, rule, where);
  return text;
}

}  // namespace hydrant::kinds
