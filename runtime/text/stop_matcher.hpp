// Ends a text at the first stop string, also across the borders of its chunks.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hydrant::text {

// The stop that is complete first wins (of two that end together, the longer), so the result does
// not depend on how the text is cut into chunks. Only text that may still become a stop string is
// held back.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);  // throws bad_input: empty or not UTF-8

  std::string push(std::string_view text);  // the text that can be shown; nothing once stopped
  std::string finish();                     // what was held back, if no stop string came
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace hydrant::text
