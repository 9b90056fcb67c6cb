// Notes and warnings for the person at the terminal: one line each, on standard error.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace hydrant::log {

enum class Level { info, warning, none };
void set_level(Level least);  // --quiet sets none
void write(Level level, std::string_view line);

// What is shown of a text that may quote anything: one line of UTF-8. A newline becomes \n, another
// control character ?, and what is no UTF-8 U+FFFD.
std::string one_line(std::string_view text);

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hydrant::log
