#include "runtime/text/decoder.hpp"

#include "runtime/text/byte_level.hpp"

namespace hydrant::text {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

struct Apply {
  std::string text;
  bool first;

  std::string operator()(const Replace& step) const { return replace(text, step.pattern, step.by); }
  std::string operator()(const StripCharacter& step) const {
    std::string_view rest = text;
    for (size_t i = 0; i < step.at_start && rest.starts_with(step.character); ++i) {
      rest.remove_prefix(step.character.size());
    }
    for (size_t i = 0; i < step.at_end && rest.ends_with(step.character); ++i) {
      rest.remove_suffix(step.character.size());
    }
    return std::string(rest);
  }
  std::string operator()(const MarkToSpace& step) const {
    return replace(text, step.mark, first && step.drop_in_first ? "" : " ");
  }
};

}  // namespace

std::optional<char> Decoder::byte_of(std::string_view token) const {
  if (bytes != Bytes::fallback || token.size() != 6 || !token.starts_with("<0x") ||
      token[5] != '>') {
    return std::nullopt;
  }
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return char(uint8_t(high * 16 + low));
}

std::string Decoder::decode(std::string_view token, bool first) const {
  std::string text(token);
  for (const auto& step : steps) text = std::visit(Apply{std::move(text), first}, step);
  if (const auto byte = byte_of(text)) {
    text.assign(1, *byte);
  } else if (bytes == Bytes::letters) {
    if (auto raw = from_byte_letters(text)) text = std::move(*raw);
  }
  if (joined_by_spaces && !first) text = std::string(" ").append(text);
  if (first && !dropped_at_start.empty() && text.starts_with(dropped_at_start)) {
    text.erase(0, dropped_at_start.size());
  }
  return text;
}

}  // namespace hydrant::text
