#include "runtime/base/json.hpp"

#include <unordered_set>
#include <vector>

namespace hydrant {
namespace {

constexpr int kDeepest = 64;

}  // namespace

Json parse_json(std::string_view text, const std::string& file, Fault fault) {
  std::vector<std::unordered_set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, const Json& value) {
    if (depth > kDeepest) fail(fault, "{}: nested deeper than {} levels", file, kDeepest);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      fail(fault, "{}: the key {} occurs twice", file, value.dump(-1, ' ', true).substr(0, 100));
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& e) {
    const std::string_view all = e.what();
    const size_t from = all.find("] ");  // behind the library's own error number
    fail(fault, "{}: not valid JSON: {}", file, all.substr(from == all.npos ? 0 : from + 2, 300));
  }
}

}  // namespace hydrant
