#include "runtime/text/pattern.hpp"

#include <algorithm>

#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

struct Segment {
  size_t begin, end;
  bool match;
};

template <class F>
void for_each_segment(std::string_view text, const Pattern& pattern, bool invert, F f) {
  size_t end = 0;
  pattern.for_each(text, [&](Range match) {
    if (end != match.begin) f(Segment{end, match.begin, invert});
    f(Segment{match.begin, match.end, !invert});
    end = match.end;
  });
  if (end != text.size()) f(Segment{end, text.size(), invert});
}

// Joins segments as the three merging behaviors want it.
std::vector<Segment> merged(std::vector<Segment> segments, Behavior behavior) {
  const bool backwards = behavior == Behavior::merged_with_next;
  if (backwards) std::reverse(segments.begin(), segments.end());
  std::vector<Segment> out;
  bool previous = false;
  for (const Segment& s : segments) {
    const bool joins =
        behavior == Behavior::contiguous ? s.match == previous : s.match && !previous;
    previous = s.match;
    if (!joins || out.empty()) {
      out.push_back(s);
    } else if (backwards) {
      out.back().begin = s.begin;
    } else {
      out.back().end = s.end;
    }
  }
  if (backwards) std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

std::optional<Range> Pattern::find(std::string_view text, size_t from) const {
  if (const Regex* regex = std::get_if<Regex>(&what_)) return regex->find(text, from);
  if (const std::string* literal = std::get_if<std::string>(&what_)) {
    const size_t at = literal->empty() ? std::string_view::npos : text.find(*literal, from);
    if (at == std::string_view::npos) return std::nullopt;
    return Range{at, at + literal->size()};
  }
  const CharacterTest test = std::get<CharacterTest>(what_);
  while (from < text.size()) {
    const Character c = character_at(text, from);
    if (test(c.code)) return Range{from, from + c.size};
    from += c.size;
  }
  return std::nullopt;
}

size_t Pattern::step(std::string_view text, size_t at) {
  return at < text.size() ? character_at(text, at).size : 1;
}

void split(std::string_view text, const Pattern& pattern, Behavior behavior, bool invert,
           const Sink& sink) {
  const auto give = [&](const Segment& s) {
    if (s.begin != s.end) sink(text.substr(s.begin, s.end - s.begin));
  };
  if (behavior == Behavior::isolated || behavior == Behavior::removed) {
    for_each_segment(text, pattern, invert, [&](const Segment& s) {
      if (behavior == Behavior::isolated || !s.match) give(s);
    });
    return;
  }
  std::vector<Segment> segments;
  for_each_segment(text, pattern, invert, [&](const Segment& s) { segments.push_back(s); });
  for (const Segment& s : merged(std::move(segments), behavior)) give(s);
}

std::string replace(std::string_view text, const Pattern& pattern, std::string_view by) {
  std::string out;
  size_t end = 0;
  pattern.for_each(text, [&](Range match) {
    out += text.substr(end, match.begin - end);
    out += by;
    end = match.end;
  });
  return out += text.substr(end);
}

}  // namespace hydrant::text
