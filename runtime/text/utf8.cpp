#include "runtime/text/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace hydrant::text {
namespace {

enum class Verdict { whole, cut, broken };

struct Sequence {
  Verdict verdict;
  size_t size;  // of the character, or of the longest part that begins one
};

// The sequence at the start of `s` (not empty), after table 3-7 of the Unicode standard.
Sequence first_sequence(std::string_view s) {
  const auto byte = [&](size_t i) { return uint8_t(s[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {Verdict::whole, 1};
  const size_t size = lead >= 0xC2 && lead <= 0xDF   ? 2
                      : lead >= 0xE0 && lead <= 0xEF ? 3
                      : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                     : 0;
  if (size == 0) return {Verdict::broken, 1};
  // The second byte's range keeps out overlong forms, surrogates and what is above U+10FFFF.
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < size; ++i) {
    if (i == s.size()) return {Verdict::cut, i};
    const bool fits = i == 1 ? byte(i) >= low && byte(i) <= high : (byte(i) & 0xC0) == 0x80;
    if (!fits) return {Verdict::broken, i};
  }
  return {Verdict::whole, size};
}

size_t ascii_prefix(std::string_view s) {
  size_t i = 0;
  for (uint64_t word = 0; i + 8 <= s.size(); i += 8) {
    std::memcpy(&word, s.data() + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (i < s.size() && uint8_t(s[i]) < 0x80) ++i;
  return i;
}

// Bytes of valid UTF-8 at the start.
size_t valid_prefix(std::string_view s) {
  size_t i = 0;
  while (true) {
    i += ascii_prefix(s.substr(i));
    if (i == s.size()) return i;
    const Sequence next = first_sequence(s.substr(i));
    if (next.verdict != Verdict::whole) return i;
    i += next.size;
  }
}

}  // namespace

bool is_utf8(std::string_view bytes) { return valid_prefix(bytes) == bytes.size(); }
bool is_ascii(std::string_view bytes) { return ascii_prefix(bytes) == bytes.size(); }

size_t append_repaired(std::string& out, std::string_view bytes, bool incomplete) {
  while (!bytes.empty()) {
    const size_t valid = valid_prefix(bytes);
    out += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    const Sequence next = first_sequence(bytes);
    if (next.verdict == Verdict::cut && incomplete) return bytes.size();
    out += kReplacement;
    bytes.remove_prefix(next.size);
  }
  return 0;
}

Character character_at(std::string_view valid, size_t at) {
  const auto byte = [&](size_t i) { return char32_t(uint8_t(valid[at + i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

Character character_before(std::string_view valid, size_t end) {
  size_t at = end - 1;
  while ((uint8_t(valid[at]) & 0xC0) == 0x80) --at;
  return character_at(valid, at);
}

void append_character(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out += char(uint8_t(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace hydrant::text
