#include "runtime/text/stop_matcher.hpp"

#include <algorithm>

#include "runtime/base/error.hpp"
#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

// The longest end of `text` that begins `stop` without completing it.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) fail(Fault::bad_input, "a stop string is empty");
    if (!is_utf8(stop)) fail(Fault::bad_input, "a stop string is not valid UTF-8");
  }
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t first_end = std::string::npos, cut = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t end = at + stop.size();
    if (end < first_end || (end == first_end && at < cut)) {
      first_end = end;
      cut = at;
    }
  }
  stopped_ = cut != std::string::npos;
  if (!stopped_) {
    size_t keep = 0;
    for (const std::string& stop : stops_) keep = std::max(keep, begun(held_, stop));
    cut = held_.size() - keep;
  }
  std::string shown = held_.substr(0, cut);
  held_.erase(0, cut);
  if (stopped_) held_.clear();
  return shown;
}

std::string StopMatcher::finish() {
  std::string rest;
  rest.swap(held_);
  return rest;
}

}  // namespace hydrant::text
