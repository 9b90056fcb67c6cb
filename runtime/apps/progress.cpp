#include "runtime/apps/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace hydrant {

Progress::Progress(std::string what, bool quiet)
    : what_(std::move(what)), visible_(!quiet && ::isatty(STDERR_FILENO)), next_(Clock::now()) {}

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

}  // namespace hydrant
