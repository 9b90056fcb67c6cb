// Exact numbers into JSON, and hints for words that nobody knows.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace hydrant {

// The shortest decimal number that reads back as the same float; throws internal when not finite.
nlohmann::ordered_json exact(float value);

// The entry of `words` nearest to `word`, as " (did you mean 'x'?)", or "" when none is near.
template <class Words>
std::string suggestion(const std::string& word, const Words& words);
size_t edit_distance(std::string_view a, std::string_view b);

template <class Words>
std::string suggestion(const std::string& word, const Words& words) {
  std::string best;
  size_t least = word.size() / 3 + 2;  // farther words have nothing to do with it
  for (const auto& w : words)
    if (const size_t d = edit_distance(word, w); d < least) {
      least = d;
      best = w;
    }
  return best.empty() ? "" : fmt::format(" (did you mean '{}'?)", best);
}

}  // namespace hydrant
