#include "runtime/model/config_reader.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {
namespace {

// The value as the description spells it, short and whatever its bytes.
std::string spelled(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 80) + "...";
  return text;
}

// The integer in [least, most] that the value holds; floats that are whole numbers count.
std::optional<int32_t> whole(const Json& value, int32_t least, int32_t most) {
  if (!value.is_number()) return std::nullopt;
  const double d = value.get<double>();  // exact for everything within the bounds
  if (!(d >= least && d <= most) || d != std::floor(d)) return std::nullopt;
  return int32_t(d);
}

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string file, std::string path,
                           std::string prefix)
    : object_(object), file_(std::move(file)), path_(std::move(path)), prefix_(std::move(prefix)) {
  if (!object.is_object())
    fail(Fault::bad_file, "{}: {} is not an object", file_, path_.empty() ? "the text" : path_);
}

const Json* ConfigReader::find(std::string_view key) const {
  const auto at = object_.find(prefix_ + std::string(key));
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

const Json& ConfigReader::get(std::string_view key) const {
  const Json* value = find(key);
  if (!value) fail(Fault::bad_file, "{}: key {}{}{} is missing", file_, path_, prefix_, key);
  return *value;
}

void ConfigReader::refuse(std::string_view key, std::string_view why) const {
  const Json* value = find(key);
  fail(Fault::bad_file, "{}: key {}{}{} is {}, {}", file_, path_, prefix_, key,
       value ? spelled(*value) : "missing", why);
}

bool ConfigReader::has(std::string_view key) const { return find(key) != nullptr; }

int32_t ConfigReader::integer(std::string_view key, int32_t least, int32_t most) const {
  const std::optional<int32_t> value = whole(get(key), least, most);
  if (!value) refuse(key, fmt::format("not a whole number from {} to {}", least, most));
  return *value;
}

int32_t ConfigReader::integer_or(std::string_view key, int32_t fallback, int32_t least,
                                 int32_t most) const {
  return has(key) ? integer(key, least, most) : fallback;
}

double ConfigReader::positive(std::string_view key) const {
  const Json& value = get(key);
  const double number = value.is_number() ? value.get<double>() : 0;
  if (!(number > 0) || !std::isfinite(number)) refuse(key, "not a positive number");
  return number;
}

double ConfigReader::positive_or(std::string_view key, double fallback) const {
  return has(key) ? positive(key) : fallback;
}

bool ConfigReader::flag_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  if (!get(key).is_boolean()) refuse(key, "not true or false");
  return get(key).get<bool>();
}

std::string ConfigReader::text(std::string_view key) const {
  if (!get(key).is_string()) refuse(key, "not a text");
  return get(key).get<std::string>();
}

std::string ConfigReader::text_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : std::string(fallback);
}

std::vector<int32_t> ConfigReader::ids_or(std::string_view key,
                                          std::vector<int32_t> fallback) const {
  if (!has(key)) return fallback;
  const Json& value = get(key);
  const Json list = value.is_array() ? value : Json::array({value});
  std::vector<int32_t> ids;
  for (const Json& item : list) {
    const std::optional<int32_t> id = whole(item, 0, std::numeric_limits<int32_t>::max());
    if (!id) refuse(key, "not a token id or a list of them");
    ids.push_back(*id);
  }
  return ids;
}

Activation ConfigReader::activation_or(std::string_view key, Activation fallback) const {
  if (!has(key)) return fallback;
  const std::string name = text(key);
  if (name == "relu") return Activation::relu;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh")
    return Activation::gelu_tanh;
  refuse(key, "known are relu, silu, swish, gelu, gelu_new, gelu_fast and gelu_pytorch_tanh");
}

std::optional<ConfigReader> ConfigReader::object(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  if (!get(key).is_object()) refuse(key, "not an object");
  return ConfigReader(get(key), file_, path_ + std::string(key) + ".");
}

void ConfigReader::refuse_if_set(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    const Json* value = find(key);
    if (value && *value != Json(false) && *value != Json(0))
      refuse(key, "which this runtime cannot do");
  }
}

}  // namespace hydrant
