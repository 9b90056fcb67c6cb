// Properties and transformations of Unicode characters.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace hydrant::text {

bool is_white_space(char32_t code);
bool is_word(char32_t code);  // a letter, mark, decimal digit or connecting punctuation: \w
bool is_numeric(char32_t code);
bool is_punctuation(char32_t code);  // all that is so in ASCII, category P elsewhere

enum class NormalForm : uint8_t { nfc, nfd, nfkc, nfkd };

// All take valid UTF-8.
std::string normalized(std::string_view text, NormalForm form);
std::string lower_case(std::string_view text);     // character by character, without context
std::string without_marks(std::string_view text);  // drops nonspacing marks

}  // namespace hydrant::text
