// Cuts a normalised text into the words within which tokens are merged.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/text/normalizer.hpp"
#include "runtime/text/pattern.hpp"

namespace hydrant::text {

struct Split {
  Pattern pattern;
  Behavior behavior;
  bool invert;
};
// Puts `text` before a piece that does not begin with it: before every piece, or only before the
// one at the very start of the text.
struct Lead {
  std::string text;
  bool only_first;
};

class PreTokenizer {
 public:
  using Step = std::variant<Split, Replace, Lead>;
  void add(Step step);
  // The words' bytes are then spelt in GPT-2's alphabet (byte_level.hpp).
  void set_byte_level() { byte_level_ = true; }
  bool byte_level() const { return byte_level_; }

  // `first`: the piece starts the text.
  void run(std::string_view piece, bool first, const Sink& sink) const {
    run(0, piece, first, sink);
  }

 private:
  void run(size_t step, std::string_view piece, bool first, const Sink& sink) const;

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace hydrant::text
