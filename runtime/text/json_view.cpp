#include "runtime/text/json_view.hpp"

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant::text {

bool JsonView::is_null() const { return value_->is_null(); }
bool JsonView::is_array() const { return value_->is_array(); }
bool JsonView::is_object() const { return value_->is_object(); }

JsonView JsonView::member(std::string_view key) const {
  static const Json null;
  if (!value_->is_object()) wrong("an object");
  const auto found = value_->find(key);
  const std::string path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  return {found == value_->end() ? null : *found, file_, path};
}

size_t JsonView::elements() const {
  if (!value_->is_array()) wrong("an array");
  return value_->size();
}

JsonView JsonView::element(size_t index) const {
  return {(*value_)[index], file_, fmt::format("{}[{}]", path_, index)};
}

std::string JsonView::string() const {
  if (!value_->is_string()) wrong("a string");
  return value_->get<std::string>();
}

std::optional<std::string> JsonView::optional_string() const {
  if (value_->is_null()) return std::nullopt;
  return string();
}

bool JsonView::boolean(std::optional<bool> absent) const {
  if (value_->is_null() && absent) return *absent;
  if (!value_->is_boolean()) wrong("true or false");
  return value_->get<bool>();
}

int64_t JsonView::integer(int64_t least, int64_t most, std::optional<int64_t> absent) const {
  if (value_->is_null() && absent) return *absent;
  const std::string wanted = fmt::format("a whole number from {} to {}", least, most);
  if (!value_->is_number_integer()) wrong(wanted);
  const bool huge = value_->is_number_unsigned() && value_->get<uint64_t>() > uint64_t(INT64_MAX);
  const int64_t number = huge ? INT64_MAX : value_->get<int64_t>();
  if (number < least || number > most) wrong(wanted);
  return number;
}

std::string JsonView::where() const {
  return path_.empty() ? file_ : fmt::format("{}: {}", file_, path_);
}

void JsonView::fail(std::string_view what) const {
  hydrant::fail(Fault::bad_file, "{}: {}", where(), what);
}

void JsonView::wrong(std::string_view wanted) const {
  std::string shown = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (value_->is_null()) shown = "nothing";
  if (shown.size() > 60) shown = std::string("an ") + value_->type_name();
  fail(fmt::format("expected {}, found {}", wanted, shown));
}

}  // namespace hydrant::text
