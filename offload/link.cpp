#include "offload/link.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

// The most that is made up for between two copies.
constexpr std::chrono::milliseconds kLate{1};
// Of a paced copy at a time: a bus moves bytes evenly, not all at once and then none for a while.
constexpr size_t kPiece = size_t{2} << 20;

}  // namespace

void check_link(double bytes_per_second) {
  if (!(bytes_per_second >= 0 && std::isfinite(bytes_per_second)))
    fail(Fault::bad_config, "memory.link: {} bytes a second, must not be negative",
         bytes_per_second);
}

Link::Clock::time_point Link::reserve(size_t bytes, bool goes_on) {
  const std::chrono::duration<double> time(double(bytes) / rate_);
  const std::lock_guard lock(mutex_);
  const auto from = goes_on ? taken_until_ : std::max(taken_until_, Clock::now() - late_);
  taken_until_ = from + std::chrono::duration_cast<Clock::duration>(time);
  late_ = {};
  return taken_until_;
}

void Link::finish(Clock::time_point until) {
  std::this_thread::sleep_until(until);
  const std::lock_guard lock(mutex_);
  late_ = std::clamp<Clock::duration>(Clock::now() - until, Clock::duration::zero(), kLate);
}

void Link::copy(Stream& lane, void* to, const void* from, size_t bytes) {
  const size_t most = rate_ == 0 ? bytes : kPiece;
  for (size_t at = 0; at < bytes; at += most) {
    const size_t piece = std::min(most, bytes - at);
    const auto enqueue = [&] {
      lane.copy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, piece);
    };
    paced(lane, piece, at > 0, enqueue);
  }
}

void Link::paced(Stream& lane, size_t bytes, const std::function<void()>& enqueue) {
  paced(lane, bytes, /*goes_on=*/false, enqueue);
}

void Link::paced(Stream& lane, size_t bytes, bool goes_on, const std::function<void()>& enqueue) {
  if (rate_ == 0) return enqueue();
  auto until = std::make_shared<Clock::time_point>();
  lane.fill(nullptr, 0, [this, until, bytes, goes_on] { *until = reserve(bytes, goes_on); });
  enqueue();
  lane.fill(nullptr, 0, [this, until] { finish(*until); });
}

}  // namespace hydrant
