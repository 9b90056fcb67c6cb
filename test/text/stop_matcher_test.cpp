#include "runtime/text/stop_matcher.hpp"

#include <catch2/catch.hpp>

#include "runtime/base/error.hpp"

using namespace hydrant;
using hydrant::text::StopMatcher;

namespace {

struct Result {
  std::string text;
  bool stopped;
  bool operator==(const Result&) const = default;
};

Result run(const std::vector<std::string>& stops, std::string_view text, size_t chunk) {
  StopMatcher matcher(stops);
  std::string shown;
  for (size_t i = 0; i < text.size(); i += chunk) shown += matcher.push(text.substr(i, chunk));
  shown += matcher.finish();
  return {shown, matcher.stopped()};
}

// Character by character: the first moment at which the text ends with a stop.
Result naive(const std::vector<std::string>& stops, std::string_view text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest != 0) return {std::string(text.substr(0, end - longest)), true};
  }
  return {std::string(text), false};
}

}  // namespace

TEST_CASE("a stop string is found however the text is cut") {
  const std::vector<std::vector<std::string>> stops = {
      {"DEFGHIJ"}, {"aa"}, {"ab", "b"}, {"bcd", "c"}, {"abab", "ba"}, {"x"}, {}, {"\n\n", "\nab"}};
  const std::vector<std::string> texts = {
      "ABCDEFGHIJKLM", "DEFGHI",    "DEFDEFGHIJ", "aaaa", "abcd",
      "cabababcbab",   "a\na\n\nb", "a\nab",      "",     "aabaa"};
  for (const auto& s : stops) {
    for (const std::string& text : texts) {
      for (size_t chunk = 1; chunk <= 5; ++chunk) {
        INFO(text << " in chunks of " << chunk);
        CHECK(run(s, text, chunk) == naive(s, text));
      }
    }
  }
}

TEST_CASE("only what may become a stop is held back") {
  StopMatcher matcher({"END.", "\n\n"});
  CHECK(matcher.push("one E") == "one ");
  CHECK(matcher.push("N") == "");
  CHECK(matcher.push("EN") == "EN");
  CHECK(matcher.push("d\n") == "ENd");
  CHECK(matcher.push("x") == "\nx");
  CHECK(matcher.push("END") == "");
  CHECK_FALSE(matcher.stopped());
  CHECK(matcher.push(".more") == "");
  CHECK(matcher.stopped());
  CHECK(matcher.push("later") == "");
  CHECK(matcher.finish() == "");
}

TEST_CASE("stop strings that cannot be matched are refused") {
  CHECK_THROWS_AS(StopMatcher({"ok", ""}), Error);
  CHECK_THROWS_AS(StopMatcher({"\xff"}), Error);
}
