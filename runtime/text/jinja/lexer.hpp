// Cuts a Jinja template into text and tags, and tags into tokens.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hydrant::text::jinja {

struct Token {
  enum class Kind { end, name, string, integer, symbol };
  Kind kind = Kind::end;
  std::string text;  // of a string: what it stands for
};

struct Segment {
  enum class Kind { text, output, statement };
  Kind kind;
  std::string text;
  std::vector<Token> tokens;  // of a tag; the last one is `end`
};

// White space beside tags is treated as with trim_blocks and lstrip_blocks; comments are left out.
std::vector<Segment> cut(std::string_view source, const std::string& where);

}  // namespace hydrant::text::jinja
