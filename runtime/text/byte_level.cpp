#include "runtime/text/byte_level.hpp"

#include <array>

#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::string, 256> letters;
  std::array<int16_t, 0x144> byte_of;  // by code point; -1: none

  Alphabet() {
    byte_of.fill(-1);
    char32_t next = 0x100;  // bytes that cannot be printed follow from here, in order
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t code = stands_for_itself(byte) ? char32_t(byte) : next++;
      append_character(letters[size_t(byte)], code);
      byte_of[code] = int16_t(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet one;
  return one;
}

}  // namespace

std::string_view byte_letter(uint8_t byte) { return alphabet().letters[byte]; }

std::string to_byte_letters(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += byte_letter(uint8_t(byte));
  return out;
}

std::optional<std::string> from_byte_letters(std::string_view text) {
  const Alphabet& known = alphabet();
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (c.code >= known.byte_of.size() || known.byte_of[c.code] < 0) return std::nullopt;
    out += char(uint8_t(known.byte_of[c.code]));
    i += c.size;
  }
  return out;
}

}  // namespace hydrant::text
