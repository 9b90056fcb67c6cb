// The kinds of value a configuration key may hold. Each function returns a Key whose path, flag,
// help and commands are still to be filled in; `get` maps a RunConfig to the member.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/apps/config_keys.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant::kinds {

std::string shown(const Json& value);  // short enough for a message
Json number_or_text(const std::string& text);
Json comma_list(const std::vector<std::string>& texts, bool numbers);
uint64_t integer_of(const Json& value, uint64_t low, uint64_t high, const std::string& rule,
                    const std::string& where);
std::string text_of(const Json& value, const std::string& rule, const std::string& where);
[[noreturn]] void refuse(const Json& value, const std::string& rule, const std::string& where);

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using type = T;
};

template <class Get>
Key integer(Get get, uint64_t low, uint64_t high) {
  using Member = std::remove_cvref_t<decltype(get(std::declval<RunConfig&>()))>;
  Key key;
  key.rule = fmt::format("an integer from {} to {}", low, high);
  key.read = [=, rule = key.rule](RunConfig& c, const Json& j, const std::string& where) {
    get(c) = static_cast<typename Plain<Member>::type>(integer_of(j, low, high, rule, where));
  };
  key.write = [=](const RunConfig& c) -> Json {
    if constexpr (std::is_same_v<Member, typename Plain<Member>::type>)
      return get(c);
    else
      return get(c) ? Json(*get(c)) : Json();
  };
  key.from_flag = [](const std::vector<std::string>& t) { return number_or_text(t.back()); };
  return key;
}

template <class Get>
Key real(Get get, double low, bool low_allowed, double high) {
  Key key;
  key.rule = fmt::format("a number {} {} and at most {}", low_allowed ? "of at least" : "above",
                         low, high);
  key.read = [=, rule = key.rule](RunConfig& c, const Json& j, const std::string& where) {
    if (!j.is_number()) refuse(j, rule, where);
    const double v = j.get<double>();
    if (!std::isfinite(v) || v < low || (!low_allowed && v == low) || v > high)
      refuse(j, rule, where);
    get(c) = v;
  };
  key.write = [=](const RunConfig& c) -> Json { return get(c); };
  key.from_flag = [](const std::vector<std::string>& t) { return number_or_text(t.back()); };
  return key;
}

// A text that `fits`; an empty one is not given.
template <class Get, class Fits>
Key text(Get get, std::string rule, Fits fits) {
  Key key;
  key.rule = std::move(rule);
  key.read = [=, rule = key.rule](RunConfig& c, const Json& j, const std::string& where) {
    std::string value = text_of(j, rule, where);
    if (!fits(value)) refuse(j, rule, where);
    get(c) = std::move(value);
  };
  key.write = [=](const RunConfig& c) -> Json {
    const std::optional<std::string> value = get(c);
    return value && !value->empty() ? Json(*value) : Json();
  };
  key.from_flag = [](const std::vector<std::string>& t) { return Json(t.back()); };
  return key;
}

template <class Get>
Key text(Get get, std::string rule) {
  return text(get, std::move(rule), [](const std::string& t) { return !t.empty(); });
}

template <class Get>
Key choice(Get get, std::vector<std::string> options) {
  std::string rule = "one of";
  for (const std::string& o : options) rule += (o == options.front() ? " " : ", ") + o;
  return text(get, rule, [=](const std::string& t) {
    return std::find(options.begin(), options.end(), t) != options.end();
  });
}

template <class Get>
Key toggle(Get get) {
  Key key;
  key.rule = "true or false";
  key.read = [=, rule = key.rule](RunConfig& c, const Json& j, const std::string& where) {
    if (!j.is_boolean()) refuse(j, rule, where);
    get(c) = j.get<bool>();
  };
  key.write = [=](const RunConfig& c) -> Json { return get(c); };
  key.from_flag = [](const std::vector<std::string>& t) { return Json(t.back() == "true"); };
  return key;
}

// Lists of integers, given as [1, 32] or 1,32.
template <class Get>
Key integers(Get get, uint64_t low, uint64_t high, bool may_be_empty) {
  Key key;
  key.rule = fmt::format("a{} list of integers from {} to {}", may_be_empty ? "" : " non-empty",
                         low, high);
  key.read = [=, rule = key.rule](RunConfig& c, const Json& j, const std::string& where) {
    if (!j.is_array() || (j.empty() && !may_be_empty)) refuse(j, rule, where);
    get(c).clear();
    for (const Json& e : j) get(c).push_back(int32_t(integer_of(e, low, high, rule, where)));
  };
  key.write = [=](const RunConfig& c) -> Json { return get(c); };
  key.from_flag = [](const std::vector<std::string>& t) { return comma_list(t, true); };
  return key;
}

// Lists of texts that `fit`. With `commas` the flag splits its text at commas.
template <class Get, class Fits>
Key texts(Get get, std::string what, Fits fits, bool commas) {
  Key key;
  key.rule = fmt::format("a list of {}", what);
  key.repeatable = !commas;
  key.read = [=, rule = key.rule](RunConfig& c, const Json& j, const std::string& where) {
    if (!j.is_array() || (j.empty() && commas)) refuse(j, rule, where);
    get(c).clear();
    for (const Json& e : j) {
      get(c).push_back(text_of(e, rule, where));
      if (!fits(get(c).back())) refuse(e, rule, where);
    }
  };
  key.write = [=](const RunConfig& c) -> Json { return get(c); };
  key.from_flag = [=](const std::vector<std::string>& t) {
    return commas ? comma_list(t, false) : Json(t);
  };
  return key;
}

}  // namespace hydrant::kinds
