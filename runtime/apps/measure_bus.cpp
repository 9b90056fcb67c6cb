// The bus between host memory and the device's own.
#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/apps/measure.hpp"

namespace hydrant {
namespace {

constexpr size_t kSizes[] = {size_t{64} << 10, size_t{1} << 20, size_t{16} << 20};
constexpr size_t kCopied = size_t{128} << 20;

// When the copies of each way had ended, in seconds from their common beginning; 0: there were
// none.
struct Ends {
  double up = 0, down = 0;
};

// Bytes a second of a way while the other is under way, too. The one that ends later has had the
// rest of its time to itself.
double shared_rate(double own, double other, double alone) {
  const double mean = double(kCopied) / own;
  if (own <= other) return std::min(alone, mean);
  const double together = (double(kCopied) - alone * (own - other)) / other;
  return std::clamp(together, mean / 8, alone);  // at least that, if noise is all that is left
}

}  // namespace

void measure_bus(Device& device, MachineRates& rates, const Measuring& measuring,
                 const std::function<double()>& now) {
  if (device.is_host()) return;
  measuring("the bus, both ways");
  const auto buffer = [&](Memory memory) {
    return device.allocate(memory, kCopied, "bytes to measure the bus with");
  };
  const Buffer host_up = buffer(Memory::pinned), host_down = buffer(Memory::pinned),
               device_up = buffer(Memory::device), device_down = buffer(Memory::device);
  std::memset(host_up.data(), 1, kCopied);
  std::memset(host_down.data(), 1, kCopied);
  const auto up = device.make_stream("up", false), down = device.make_stream("down", false);
  const auto pass = [&](size_t bytes, bool goes_up, bool goes_down) {
    std::vector<double> ups, downs;
    for (int i = 0; i <= kRounds; i++) {
      Ends ends;
      const double begin = now();
      for (size_t at = 0; at < kCopied; at += bytes) {
        const auto copy = [&](Stream& stream, const Buffer& to, const Buffer& from) {
          stream.copy(static_cast<std::byte*>(to.data()) + at,
                      static_cast<const std::byte*>(from.data()) + at, bytes);
        };
        if (goes_up) copy(*up, device_up, host_up);
        if (goes_down) copy(*down, host_down, device_down);
      }
      if (goes_up) up->fill(nullptr, 0, [&] { ends.up = now() - begin; });
      if (goes_down) down->fill(nullptr, 0, [&] { ends.down = now() - begin; });
      up->synchronize();
      down->synchronize();
      if (i == 0) continue;  // the first warms up
      ups.push_back(ends.up);
      downs.push_back(ends.down);
    }
    return Ends{median(std::move(ups)), median(std::move(downs))};
  };
  BusRates& bus = rates.bus;
  for (Curve* curve : {&bus.up, &bus.down, &bus.up_shared, &bus.down_shared})
    curve->beyond = Curve::Beyond::level;
  for (const size_t bytes : kSizes) {
    const double size = double(bytes), all = double(kCopied),
                 up_alone = all / pass(bytes, true, false).up,
                 down_alone = all / pass(bytes, false, true).down;
    const Ends both = pass(bytes, true, true);
    bus.up.points.emplace_back(size, up_alone);
    bus.down.points.emplace_back(size, down_alone);
    bus.up_shared.points.emplace_back(size, shared_rate(both.up, both.down, up_alone));
    bus.down_shared.points.emplace_back(size, shared_rate(both.down, both.up, down_alone));
  }
}

}  // namespace hydrant
