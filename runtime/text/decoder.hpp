// What a token adds to a decoded text.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/text/normalizer.hpp"

namespace hydrant::text {

// Drops up to so many of one character at each end of a token.
struct StripCharacter {
  std::string character;
  size_t at_start, at_end;
};
// The mark is a space, but at the start of the text it is nothing.
struct MarkToSpace {
  std::string mark;
  bool drop_in_first;
};

struct Decoder {
  enum class Bytes : uint8_t {
    plain,     // a token's text is its spelling
    letters,   // GPT-2's alphabet, where all of a token is in it
    fallback,  // <0xE2> is the byte E2
  };
  std::vector<std::variant<Replace, StripCharacter, MarkToSpace>> steps;  // on each spelling
  Bytes bytes = Bytes::plain;
  bool joined_by_spaces = false;
  std::string dropped_at_start;  // of the whole text, once

  std::optional<char> byte_of(std::string_view token) const;  // a byte token's byte
  // `first`: no token came before.
  std::string decode(std::string_view token, bool first) const;
};

}  // namespace hydrant::text
