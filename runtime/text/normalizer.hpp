// What is done to a text before it is cut into words.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/text/pattern.hpp"
#include "runtime/text/unicode.hpp"

namespace hydrant::text {

struct Replace {
  Pattern pattern;
  std::string by;
};
struct Prepend {
  std::string text;  // not to an empty text
};
struct StripSpace {
  bool left, right;
};
enum class Fold : uint8_t { lower_case, without_marks };

// Steps in order; none: the text stays as it is.
class Normalizer {
 public:
  using Step = std::variant<NormalForm, Fold, Replace, Prepend, StripSpace>;
  void add(Step step);
  std::string apply(std::string_view valid_utf8) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace hydrant::text
