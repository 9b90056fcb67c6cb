// The bus between host memory and the device's own.
#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/apps/measure.hpp"

namespace hydrant {
namespace {

constexpr size_t kSizes[] = {size_t{64} << 10, size_t{1} << 20, size_t{16} << 20};
constexpr size_t kCopied = size_t{128} << 20;

}  // namespace

void measure_bus(Device& device, MachineRates& rates, const Measuring& measuring) {
  if (device.is_host()) return;
  using Clock = std::chrono::steady_clock;
  measuring("the bus, both ways");
  const auto buffer = [&](Memory memory) {
    return device.allocate(memory, kCopied, "bytes to measure the bus with");
  };
  const Buffer host_up = buffer(Memory::pinned), host_down = buffer(Memory::pinned),
               device_up = buffer(Memory::device), device_down = buffer(Memory::device);
  std::memset(host_up.data(), 1, kCopied);
  std::memset(host_down.data(), 1, kCopied);
  const auto up = device.make_stream("up", false), down = device.make_stream("down", false);
  // Seconds of a pass, in copies of `bytes`.
  const auto pass = [&](size_t bytes, bool goes_up, bool goes_down) {
    std::vector<double> seconds;
    for (int i = 0; i <= kRounds; i++) {
      const auto begin = Clock::now();
      for (size_t at = 0; at < kCopied; at += bytes) {
        const auto copy = [&](Stream& stream, const Buffer& to, const Buffer& from) {
          stream.copy(static_cast<std::byte*>(to.data()) + at,
                      static_cast<const std::byte*>(from.data()) + at, bytes);
        };
        if (goes_up) copy(*up, device_up, host_up);
        if (goes_down) copy(*down, host_down, device_down);
      }
      up->synchronize();
      down->synchronize();
      if (i > 0)
        seconds.push_back(
            std::chrono::duration<double>(Clock::now() - begin).count());  // the first warms up
    }
    return median(std::move(seconds));
  };
  BusRates& bus = rates.bus;
  for (Curve* curve : {&bus.up, &bus.down, &bus.up_shared, &bus.down_shared})
    curve->beyond = Curve::Beyond::level;
  for (const size_t bytes : kSizes) {
    const double size = double(bytes), all = double(kCopied), one = all / pass(bytes, true, false),
                 other = all / pass(bytes, false, true), both = all / pass(bytes, true, true);
    bus.up.points.emplace_back(size, one);
    bus.down.points.emplace_back(size, other);
    // Of the way that ends first more would be said by its own end: this is what both have at
    // least.
    bus.up_shared.points.emplace_back(size, std::min(one, both));
    bus.down_shared.points.emplace_back(size, std::min(other, both));
  }
}

}  // namespace hydrant
