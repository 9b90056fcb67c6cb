#include "runtime/apps/sizes.hpp"

#include <charconv>

namespace hydrant {
namespace {

// What a unit stands for; 0: nothing is called that.
double unit_bytes(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  constexpr std::string_view kLetters = "KMGT";
  const size_t power = kLetters.find(unit[0]);
  if (power == kLetters.npos) return 0;
  const double step = unit.substr(1) == "iB" ? 1024 : unit.substr(1) == "B" ? 1000 : 0;
  double bytes = step;
  for (size_t i = 0; i < power; i++) bytes *= step;
  return bytes;
}

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  // ".5" and "5." are not numbers in JSON, nor here.
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!is_digit(text.front()) || !is_digit(*(end - 1))) return std::nullopt;
  const double unit = unit_bytes(text.substr(size_t(end - text.data())));
  const double bytes = number * unit;
  // Not a number compares false.
  if (unit == 0 || !(number >= 0 && bytes <= double(kMostBytes))) return std::nullopt;
  return uint64_t(bytes);
}

std::optional<uint64_t> parse_rate(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  return parse_bytes(text);
}

}  // namespace hydrant
