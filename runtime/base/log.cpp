#include "runtime/base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

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
    logger().warn("warning: {}", line);
  else
    logger().info("{}", line);
}

}  // namespace hydrant::log
