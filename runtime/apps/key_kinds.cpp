#include "runtime/apps/key_kinds.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant::kinds {
namespace {

// Messages of one key: WHERE must be RULE.
class Rule {
 public:
  explicit Rule(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }
  // `list`: what the value stands in.
  void require(bool holds, const Json& value, const std::string& where,
               const Json* list = nullptr) const {
    if (!holds)
      fail(Fault::bad_config, "{}: must be {}, not {}{}", where, text_, shown(value),
           list ? " in " + shown(*list) : "");
  }
  uint64_t integer(const Json& value, uint64_t low, uint64_t high, const std::string& where,
                   const Json* list = nullptr) const {
    require(value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0),
            value, where, list);
    const auto number = value.get<uint64_t>();
    require(number >= low && number <= high, value, where, list);
    return number;
  }
  std::string string(const Json& value, const std::string& where,
                     const Json* list = nullptr) const {
    require(value.is_string(), value, where, list);
    std::string text = value.get<std::string>();
    require(text.find('\0') == text.npos, value, where, list);
    return text;
  }

 private:
  std::string text_;
};

// Writing looks at a member through the function that reading writes it with.
template <class T>
const T& value_of(Member<T> member, const RunConfig& config) {
  return member(const_cast<RunConfig&>(config));
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
  return !real.is_null() && std::isfinite(real.get<double>()) ? written_number(text) : Json(text);
}

Json number_flag(const std::vector<std::string>& texts) { return number_or_text(texts.back()); }
Json text_flag(const std::vector<std::string>& texts) { return texts.back(); }

template <class T>
Key any_integer(Member<T> member, uint64_t low, uint64_t high) {
  const Rule rule(fmt::format("an integer from {} to {}", low, high));
  Key key;
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    const uint64_t number = rule.integer(j, low, high, where);
    if constexpr (std::is_same_v<T, uint64_t>)
      member(c) = number;
    else
      member(c) = int32_t(number);
  };
  key.write = [=](const RunConfig& c) -> Json {
    if constexpr (std::is_same_v<T, std::optional<int32_t>>)
      return value_of(member, c) ? Json(*value_of(member, c)) : Json();
    else
      return value_of(member, c);
  };
  key.from_flag = number_flag;
  return key;
}

}  // namespace

Json comma_list(const std::string& text, bool numbers) {
  Json list = Json::array();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    list.push_back(numbers ? number_or_text(part) : Json(part));
    begin = end + 1;
  }
  return list;
}

Key integer(Member<int32_t> member, uint64_t low, uint64_t high) {
  return any_integer(member, low, high);
}
Key integer(Member<uint64_t> member, uint64_t low, uint64_t high) {
  return any_integer(member, low, high);
}
Key integer(Member<std::optional<int32_t>> member, uint64_t low, uint64_t high) {
  return any_integer(member, low, high);
}

Key real(Member<double> member, double low, bool low_allowed, double high) {
  const Rule rule(fmt::format("a number {} {} and at most {}",
                              low_allowed ? "of at least" : "above", low, high));
  Key key;
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    rule.require(is_number(j), j, where);
    const double v = number_of(j);
    rule.require(std::isfinite(v) && v >= low && (low_allowed || v > low) && v <= high, j, where);
    member(c) = v;
  };
  key.write = [=](const RunConfig& c) -> Json {  // 1, not 1.0
    const double v = value_of(member, c);
    return v == std::floor(v) ? Json(int64_t(v)) : Json(v);
  };
  key.from_flag = number_flag;
  return key;
}

Key toggle(Member<bool> member) {
  const Rule rule("true or false");
  Key key;
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    rule.require(j.is_boolean(), j, where);
    member(c) = j.get<bool>();
  };
  key.write = [=](const RunConfig& c) -> Json { return value_of(member, c); };
  key.from_flag = [](const std::vector<std::string>& t) {
    const bool is_truth = t.back() == "true" || t.back() == "false";
    return is_truth ? Json(t.back() == "true") : Json(t.back());
  };
  return key;
}

Key text(Member<std::string> member, const std::string& what, Fits fits) {
  const Rule rule(what);
  Key key;
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    std::string value = rule.string(j, where);
    rule.require(fits ? fits(value) : !value.empty(), j, where);
    member(c) = std::move(value);
  };
  key.write = [=](const RunConfig& c) -> Json {
    return value_of(member, c).empty() ? Json() : Json(value_of(member, c));
  };
  key.from_flag = text_flag;
  return key;
}

Key text(Member<std::optional<std::string>> member, const std::string& what) {
  const Rule rule(what);
  Key key;
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    member(c) = rule.string(j, where);
  };
  key.write = [=](const RunConfig& c) -> Json {
    return value_of(member, c) ? Json(*value_of(member, c)) : Json();
  };
  key.from_flag = text_flag;
  return key;
}

Key choice(Member<std::string> member, const std::vector<std::string>& options) {
  std::string what = "one of";
  for (const std::string& o : options)
    what += fmt::format("{} {}", o == options.front() ? "" : ",", o);
  const Rule rule(what);
  Key key = text(member, what);
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    std::string value = rule.string(j, where);
    rule.require(std::find(options.begin(), options.end(), value) != options.end(), j, where);
    member(c) = std::move(value);
  };
  return key;
}

Key integers(Member<std::vector<int32_t>> member, uint64_t low, uint64_t high, bool may_be_empty) {
  const Rule rule(fmt::format("a{} list of integers from {} to {}",
                              may_be_empty ? "" : " non-empty", low, high));
  Key key;
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    rule.require(j.is_array() && (may_be_empty || !j.empty()), j, where);
    std::vector<int32_t> list;
    for (const Json& e : j) list.push_back(int32_t(rule.integer(e, low, high, where, &j)));
    member(c) = std::move(list);
  };
  key.write = [=](const RunConfig& c) -> Json { return value_of(member, c); };
  key.from_flag = [](const std::vector<std::string>& t) {
    return comma_list(t.back(), /*numbers=*/true);
  };
  return key;
}

Key texts(Member<std::vector<std::string>> member, const std::string& what, Fits fits,
          bool commas) {
  const Rule rule(fmt::format("a{} list of {}", commas ? " non-empty" : "", what));
  Key key;
  key.repeatable = !commas;
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    rule.require(j.is_array() && (!commas || !j.empty()), j, where);
    std::vector<std::string> list;
    for (const Json& e : j) {
      list.push_back(rule.string(e, where, &j));
      rule.require(fits(list.back()), e, where, &j);
    }
    member(c) = std::move(list);
  };
  key.write = [=](const RunConfig& c) -> Json {
    const auto& list = value_of(member, c);
    return commas && list.empty() ? Json() : Json(list);  // an empty one would not be read back
  };
  key.from_flag = [=](const std::vector<std::string>& t) {
    return commas ? comma_list(t.back(), /*numbers=*/false) : Json(t);
  };
  return key;
}

}  // namespace hydrant::kinds
