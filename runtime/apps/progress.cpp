#include "runtime/apps/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hydrant {

Progress::Progress(std::string what, bool quiet, std::chrono::milliseconds patience)
    : what_(std::move(what)),
      visible_(!quiet && ::isatty(STDERR_FILENO)),
      next_(Clock::now() + patience) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::show(double share, const std::string& note) {
  if (!visible_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  constexpr int kWidth = 30;
  const int full = int(std::clamp(share, 0.0, 1.0) * kWidth);
  fmt::print(stderr, "\r\x1b[K{} [{:#<{}}{: <{}}] {:3.0f} % {}", what_, "", full, "", kWidth - full,
             share * 100, note);
  std::fflush(stderr);
  drawn_ = true;
}

std::string time_left_text(double share, double seconds) {
  if (!(share > 0.01)) return "";
  const double left = std::max(seconds / share - seconds, 0.0);
  return left < 90 ? fmt::format("about {:.0f} s left", std::ceil(left))
                   : fmt::format("about {:.0f} min left", std::ceil(left / 60));
}

}  // namespace hydrant
