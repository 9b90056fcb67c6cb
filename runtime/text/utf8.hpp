// UTF-8 as bytes: checking, repairing, walking.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace hydrant::text {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_utf8(std::string_view bytes);
bool is_ascii(std::string_view bytes);

// Appends `bytes`, one U+FFFD for each longest part that is no UTF-8. With `incomplete`, a cut-off
// character at the end is left out and its length returned; otherwise it too becomes U+FFFD (0).
size_t append_repaired(std::string& out, std::string_view bytes, bool incomplete = false);

// In valid UTF-8: the character that starts at `at`, or ends at `end`.
struct Character {
  char32_t code;
  size_t size;
};
Character character_at(std::string_view valid, size_t at);
Character character_before(std::string_view valid, size_t end);

void append_character(std::string& out, char32_t code);

}  // namespace hydrant::text
