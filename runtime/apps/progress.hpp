// A bar on standard error while it is a terminal; nothing otherwise.
#pragma once
#include <chrono>
#include <string>

namespace hydrant {

class Progress {
 public:
  Progress(std::string what, bool quiet);
  ~Progress();  // removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Drawn at most ten times a second.
  void show(double share, const std::string& note);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  bool visible_, drawn_ = false;
  Clock::time_point next_;
};

}  // namespace hydrant
