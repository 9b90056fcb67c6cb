#include "runtime/apps/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "runtime/base/json.hpp"

namespace hydrant {

Json parse_json(std::string_view text, const std::string& name, Fault fault) {
  constexpr int kDeepest = 64;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest) fail(fault, "{}: nested deeper than {} levels", name, kDeepest);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      fail(fault, "{}: the key {} stands twice in one object", name, value.dump());
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (const Json::exception& e) {
    std::string what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    if (const size_t end = what.find("] "); end != what.npos) what.erase(0, end + 2);
    if (what.size() > 200) what = what.substr(0, 197) + "...";
    fail(fault, "{}: not JSON: {}", name, what);
  }
}

nlohmann::ordered_json exact(float value) {
  ensure(std::isfinite(value), "a number that is not finite was to be written");
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  double wide = 0;
  std::from_chars(digits, end, wide);
  return wide;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

}  // namespace hydrant
