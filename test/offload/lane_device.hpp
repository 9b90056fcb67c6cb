// A device whose lanes can be watched and broken; those that operations run on can only be broken
// from their beginning, for the operations know none but their own backend's.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"
#include "test/support/test_backend.hpp"

namespace hydrant::test {

class LaneDevice final : public Device {
 public:
  explicit LaneDevice(int threads = 1) : inner_(open_device(engine_device(), {threads, ""})) {}
  std::string_view name() const override { return inner_->name(); }
  std::string describe() const override { return inner_->describe(); }
  std::string_view isa() const override { return inner_->isa(); }
  int threads() const override { return inner_->threads(); }
  Buffer allocate(Memory memory, size_t bytes, std::string_view what) override {
    (memory == Memory::device ? on_device : on_host) += bytes;
    return inner_->allocate(memory, bytes, what);
  }
  size_t available(Memory memory) const override { return inner_->available(memory); }
  bool is_host() const override { return computes_in_host_memory; }
  std::unique_ptr<Stream> make_stream(std::string_view lane, bool inline_work) override {
    auto stream = inner_->make_stream(lane, inline_work);
    if (lane == "compute" || lane == "load") return stream;  // load: homes that are filled once
    if (lane == "store_cache") {
      if (breaks_at.contains(std::string(lane))) break_lane(*stream);
      return stream;
    }
    return std::make_unique<Lane>(*this, std::move(stream));
  }
  std::unique_ptr<Event> make_event() override { return inner_->make_event(); }
  Ops& ops() override { return inner_->ops(); }

  bool computes_in_host_memory = engine_device() == "cpu";
  size_t on_device = 0, on_host = 0;     // allocated, ever
  std::atomic<uint64_t> copied{0};       // by lanes that move things
  std::map<std::string, int> breaks_at;  // [lane] the copy or fill that throws, counted from 0

 private:
  static void break_lane(Stream& stream) {
    stream.fill(nullptr, 0, [name = std::string(stream.lane())] {
      fail(Fault::io, "lane {} is broken", name);
    });
  }
  class Lane final : public Stream {
   public:
    Lane(LaneDevice& device, std::unique_ptr<Stream> inner)
        : device_(device), inner_(std::move(inner)) {
      const auto at = device.breaks_at.find(std::string(inner_->lane()));
      if (at != device.breaks_at.end()) left_ = at->second;
    }
    std::string_view lane() const override { return inner_->lane(); }
    void copy(void* to, const void* from, size_t bytes) override {
      break_now();
      inner_->copy(to, from, bytes);
      device_.copied += bytes;
    }
    void fill(void* to, size_t bytes, std::function<void()> work) override {
      break_now();
      inner_->fill(to, bytes, std::move(work));
    }
    void enter(const WorkPart& part) override { inner_->enter(part); }
    void record(Event& event) override { inner_->record(event); }
    void wait(const Event& event) override { inner_->wait(event); }
    void synchronize() override { inner_->synchronize(); }

   private:
    void break_now() {
      if (left_-- == 0) break_lane(*inner_);
    }
    LaneDevice& device_;
    std::unique_ptr<Stream> inner_;
    int left_ = -1;
  };

  std::unique_ptr<Device> inner_;
};

}  // namespace hydrant::test
