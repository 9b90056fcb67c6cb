// What a tokenizer file can look for in a text, and how it cuts the text there.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/text/regex.hpp"

namespace hydrant::text {

using CharacterTest = bool (*)(char32_t);

// An expression, a literal string, one character, or any character that passes a test.
class Pattern {
 public:
  Pattern(Regex regex) : what_(std::move(regex)) {}
  Pattern(std::string literal) : what_(std::move(literal)) {}
  Pattern(CharacterTest test) : what_(test) {}

  // All matches, left to right; an empty match directly after another does not count.
  template <class F>
  void for_each(std::string_view text, F on_match) const {
    size_t from = 0;
    std::optional<size_t> last_end;
    while (from <= text.size()) {
      const std::optional<Range> match = find(text, from);
      if (!match) return;
      if (match->begin == match->end && last_end == match->end) {
        from = match->end + step(text, match->end);
        continue;
      }
      from = match->end;
      last_end = from;
      on_match(*match);
    }
  }

 private:
  std::optional<Range> find(std::string_view text, size_t from) const;
  static size_t step(std::string_view text, size_t at);

  std::variant<Regex, std::string, CharacterTest> what_;
};

enum class Behavior : uint8_t {
  removed,               // matches vanish
  isolated,              // each match is a piece of its own
  merged_with_previous,  // a match ends the piece before it
  merged_with_next,      // a match begins the piece after it
  contiguous,            // neighbouring matches are one piece
};

using Sink = std::function<void(std::string_view piece)>;

// Gives the pieces of `text` to the sink in order, empty ones left out. `invert`: what lies between
// the matches counts as match.
void split(std::string_view text, const Pattern& pattern, Behavior behavior, bool invert,
           const Sink& sink);

// Every match replaced.
std::string replace(std::string_view text, const Pattern& pattern, std::string_view by);

}  // namespace hydrant::text
