// GPT-2's printable alphabet: each byte is written as one character.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hydrant::text {

std::string_view byte_letter(uint8_t byte);           // its spelling in UTF-8
std::string to_byte_letters(std::string_view bytes);  // byte by byte
// The inverse; nothing if some character is not in the alphabet.
std::optional<std::string> from_byte_letters(std::string_view text);

}  // namespace hydrant::text
