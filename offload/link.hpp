// The way from host memory to the device.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>

#include "runtime/device/stream.hpp"

namespace hydrant {

// Throws bad_config unless it is a rate, or 0.
void check_link(double bytes_per_second);

// Where device memory is host memory, a slower bus can be stood in for: a copy of b bytes then
// keeps its lane for b / rate seconds, asleep but for the copying itself. Lanes that share the link
// share its rate.
class Link {
 public:
  explicit Link(double bytes_per_second = 0) : rate_(bytes_per_second) {}  // 0: as fast as it goes
  void copy(Stream& lane, void* to, const void* from, size_t bytes);
  // What `enqueue` enqueues on the lane moves so many bytes over the link.
  void paced(Stream& lane, size_t bytes, const std::function<void()>& enqueue);

 private:
  using Clock = std::chrono::steady_clock;
  void paced(Stream& lane, size_t bytes, bool goes_on, const std::function<void()>& enqueue);
  // goes_on: a copy's next piece, which a bus has at hand whenever the one before it ends.
  Clock::time_point reserve(size_t bytes, bool goes_on);
  void finish(Clock::time_point until);

  double rate_;
  std::mutex mutex_;
  Clock::time_point taken_until_{};
  // A sleep ends late: what the last one was late by is taken off the next copy's time, so that
  // many small copies one behind another have the link's rate and not less.
  Clock::duration late_{};
};

}  // namespace hydrant
