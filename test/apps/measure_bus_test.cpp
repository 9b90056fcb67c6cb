// The rates of the bus, measured on one whose rates are known, in a time of its own.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>

#include "runtime/apps/measure.hpp"
#include "test/support/row_device.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

// Bytes a second of copies that never end.
struct Rates {
  double up, down, up_shared, down_shared;
};

// A copy takes as long as if it had so many bytes more.
constexpr double kBesides = 32 << 10;
double share(double bytes) { return bytes / (bytes + kBesides); }

// A device at the end of a bus: nothing is copied, but the time that it takes passes while somebody
// waits for it.
class BusDevice final : public RowDevice {
 public:
  explicit BusDevice(const Rates& rates) : rates_(rates) {}
  bool is_host() const override { return false; }
  Buffer allocate(Memory memory, size_t bytes, std::string_view what) override {
    Buffer buffer = RowDevice::allocate(memory, bytes, what);
    memory_[static_cast<const char*>(buffer.data())] = {bytes, memory};
    return buffer;
  }
  std::unique_ptr<Stream> make_stream(std::string_view lane, bool) override {
    auto stream = std::make_unique<Lane>(*this, lane);
    lanes_.push_back(stream.get());
    return stream;
  }
  double now() const { return now_; }

 private:
  struct Work {
    bool goes_up = false;
    double bytes = 0, left = 0;
    std::function<void()> fill;
  };
  class Lane final : public Stream {
   public:
    Lane(BusDevice& device, std::string_view lane) : device_(device), lane_(lane) {}
    ~Lane() override { std::erase(device_.lanes_, this); }
    std::string_view lane() const override { return lane_; }
    void copy(void* to, const void* from, size_t bytes) override {
      const Memory there = device_.kind(to, bytes), here = device_.kind(from, bytes);
      ensure((there == Memory::device ? here : there) == Memory::pinned, "a copy of {} bytes",
             bytes);
      work.push_back({there == Memory::device, double(bytes), double(bytes), nullptr});
    }
    void fill(void*, size_t, std::function<void()> done) override {
      work.push_back({false, 0, 0, std::move(done)});
    }
    void record(Event&) override { FAIL("no events here"); }
    void wait(const Event&) override { FAIL("no events here"); }
    void synchronize() override { device_.run(*this); }

    std::deque<Work> work;

   private:
    BusDevice& device_;
    const std::string lane_;
  };

  Memory kind(const void* at, size_t bytes) const {
    auto found = memory_.upper_bound(static_cast<const char*>(at));
    ensure(found != memory_.begin(), "unknown memory");
    --found;
    ensure(static_cast<const char*>(at) + bytes <= found->first + found->second.first,
           "{} bytes leave their buffer", bytes);
    return found->second.second;
  }
  double rate(const Work& w) const {
    const bool both = std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane* lane) {
      return !lane->work.empty() && lane->work.front().goes_up != w.goes_up;
    });
    return share(w.bytes) * (w.goes_up ? both ? rates_.up_shared : rates_.up
                             : both    ? rates_.down_shared
                                       : rates_.down);
  }
  void run(const Lane& until) {
    while (!until.work.empty()) {
      double step = 1e9;
      for (Lane* lane : lanes_)
        if (!lane->work.empty())
          step = std::min(step, lane->work.front().left / rate(lane->work.front()));
      std::vector<double> moved;
      for (const Lane* lane : lanes_)
        moved.push_back(lane->work.empty() ? 0 : step * rate(lane->work.front()));
      now_ += step;
      for (size_t i = 0; i < lanes_.size(); i++) {
        auto& work = lanes_[i]->work;
        if (!work.empty()) work.front().left -= moved[i];
        if (!work.empty() && !work.front().fill && work.front().left < 1e-3) work.pop_front();
        for (; !work.empty() && work.front().fill; work.pop_front()) work.front().fill();
      }
    }
  }

  const Rates rates_;
  double now_ = 7;
  std::map<const char*, std::pair<size_t, Memory>> memory_;
  std::vector<Lane*> lanes_;
};

MachineRates measured(const Rates& bus) {
  BusDevice device(bus);
  MachineRates rates;
  measure_bus(
      device, rates, [](const std::string&) {}, [&] { return device.now(); });
  return rates;
}

void check_curve(const Curve& curve, double rate) {
  REQUIRE(curve.points.size() == 3);
  for (const auto& [bytes, measured] : curve.points) {
    CAPTURE(bytes);
    CHECK(measured == Approx(rate * share(bytes)).epsilon(1e-6));
  }
}

}  // namespace

TEST_CASE("the rates of a bus are found each way, alone and shared") {
  // As fast both ways or not, with room for both, with less, and with one way that suffers more.
  for (const Rates& r :
       {Rates{20e9, 20e9, 20e9, 20e9}, Rates{20e9, 20e9, 10e9, 10e9}, Rates{25e9, 26e9, 19e9, 22e9},
        Rates{12e9, 6e9, 8e9, 5e9}, Rates{6e9, 12e9, 6e9, 12e9}, Rates{12e9, 12e9, 10e9, 3e9}}) {
    const BusRates bus = measured(r).bus;
    CAPTURE(r.up, r.down, r.up_shared, r.down_shared);
    check_curve(bus.up, r.up);
    check_curve(bus.down, r.down);
    check_curve(bus.up_shared, r.up_shared);
    check_curve(bus.down_shared, r.down_shared);
  }
}

TEST_CASE("a way that waits for the other still has a rate") {
  const BusRates bus = measured({10e9, 10e9, 10e9, 1e3}).bus;
  check_curve(bus.up_shared, 10e9);
  for (const auto& [bytes, rate] : bus.down_shared.points) {
    CHECK(rate > 1e8);
    CHECK(rate < 10e9);
  }
}

TEST_CASE("where device memory is host memory there is no bus") {
  RowDevice device;
  MachineRates rates;
  measure_bus(device, rates, [](const std::string&) { FAIL("nothing is measured"); });
  CHECK_FALSE(rates.bus.measured());
  CHECK(device.allocations == 0);
}
