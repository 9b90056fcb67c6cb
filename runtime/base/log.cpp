#include "runtime/base/log.hpp"

#include <algorithm>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <utf8proc.h>

namespace hydrant::log {
namespace {

spdlog::logger& logger() {
  static const auto made = [] {
    auto l = spdlog::stderr_logger_mt("hydrant");
    l->set_pattern("hydrant: %v");
    return l;
  }();
  return *made;
}

}  // namespace

void set_level(Level least) {
  logger().set_level(least == Level::info      ? spdlog::level::info
                     : least == Level::warning ? spdlog::level::warn
                                               : spdlog::level::off);
}

void write(Level level, std::string_view line) {
  if (level == Level::warning)
    logger().warn("warning: {}", one_line(line));
  else
    logger().info("{}", one_line(line));
}

std::string one_line(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  std::string line;
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes + i, utf8proc_ssize_t(text.size() - i), &code);
    if (length < 0)
      line += "\xEF\xBF\xBD";
    else if (code == '\n')
      line += "\\n";
    else if (code < ' ' || (code >= 0x7f && code < 0xa0))
      line += '?';
    else
      line += text.substr(i, size_t(length));
    i += size_t(std::max<utf8proc_ssize_t>(length, 1));
  }
  return line;
}

}  // namespace hydrant::log
