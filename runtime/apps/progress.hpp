// A bar on standard error while it is a terminal; nothing otherwise.
#pragma once
#include <chrono>
#include <string>

namespace hydrant {

class Progress {
 public:
  // Nothing is drawn for as long as `patience`: short work needs no bar.
  Progress(std::string what, bool quiet,
           std::chrono::milliseconds patience = std::chrono::milliseconds(0));
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

// "about 12 s left" of work of which this share has taken this long; "" while there is no telling.
std::string time_left_text(double share, double seconds);

}  // namespace hydrant
