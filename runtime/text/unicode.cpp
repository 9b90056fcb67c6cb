#include "runtime/text/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

utf8proc_category_t category(char32_t code) { return utf8proc_category(utf8proc_int32_t(code)); }

template <class F>
void for_each_character(std::string_view text, F f) {
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    f(c.code);
    i += c.size;
  }
}

}  // namespace

bool is_white_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_word(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return true;
    default:  // symbols that are alphabetic: circled letters; joiners
      return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
             (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189) ||
             code == 0x200C || code == 0x200D;
  }
}

bool is_numeric(char32_t code) {
  const utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) {
    return (code > 0x20 && code < 0x30) || (code > 0x39 && code < 0x41) ||
           (code > 0x5A && code < 0x61) || (code > 0x7A && code < 0x7F);
  }
  const utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

std::string normalized(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  const auto options =
      utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));

  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  for_each_character(text, [&](char32_t code) {
    utf8proc_int32_t parts[32];
    const auto count =
        utf8proc_decompose_char(utf8proc_int32_t(code), parts, std::size(parts), options, nullptr);
    ensure(count >= 0 && count <= utf8proc_ssize_t(std::size(parts)),
           "decomposing U+{:04X} gave {}", uint32_t(code), count);
    codes.insert(codes.end(), parts, parts + count);
  });
  // Canonical order of marks. The library's own sort is quadratic in the length of a run.
  const auto rank = [](utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
  };
  for (auto i = codes.begin(); i != codes.end();) {
    if (rank(*i) == 0) {
      ++i;
      continue;
    }
    const auto end = std::find_if(i, codes.end(), [&](auto code) { return rank(code) == 0; });
    std::stable_sort(i, end, [&](auto a, auto b) { return rank(a) < rank(b); });
    i = end;
  }
  if (composed) {
    const auto count =
        utf8proc_normalize_utf32(codes.data(), utf8proc_ssize_t(codes.size()),
                                 utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    ensure(count >= 0, "normalising a text failed with {}", count);
    codes.resize(size_t(count));
  }
  std::string out;
  out.reserve(text.size());
  for (const auto code : codes) append_character(out, char32_t(code));
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&](char32_t code) {
    if (code == 0x130) {
      out += "i\xCC\x87";  // the one character whose lower case is two
    } else {
      append_character(out, char32_t(utf8proc_tolower(utf8proc_int32_t(code))));
    }
  });
  return out;
}

std::string without_marks(std::string_view text) {
  std::string out;
  for_each_character(text, [&](char32_t code) {
    if (category(code) != UTF8PROC_CATEGORY_MN) append_character(out, code);
  });
  return out;
}

}  // namespace hydrant::text
