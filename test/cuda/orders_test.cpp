// The whole backend in whatever order the card's streams take: weights, caches and hidden states
// come from everywhere, and rows are the CPU backend's. Meant for EMU_SCHED=det with many seeds,
// where device memory is out of the host's reach as well.
#include <catch2/catch.hpp>

#include "offload/hidden_offload.hpp"
#include "offload/offloaded_caches.hpp"
#include "offload/weight_prefetcher.hpp"
#include "test/offload/file_model.hpp"
#include "test/offload/watchdog.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

// The card, with lanes that the caller's thread issues to: then the seed alone decides the order.
class OneThread final : public Device {
 public:
  std::string_view name() const override { return card_->name(); }
  std::string describe() const override { return card_->describe(); }
  std::string_view isa() const override { return card_->isa(); }
  int threads() const override { return card_->threads(); }
  Buffer allocate(Memory memory, size_t bytes, std::string_view what) override {
    return card_->allocate(memory, bytes, what);
  }
  size_t available(Memory memory) const override { return card_->available(memory); }
  bool is_host() const override { return card_->is_host(); }
  std::unique_ptr<Stream> make_stream(std::string_view lane, bool) override {
    return card_->make_stream(lane, /*inline_work=*/true);
  }
  std::unique_ptr<Event> make_event() override { return card_->make_event(); }
  Ops& ops() override { return card_->ops(); }

 private:
  std::unique_ptr<Device> card_ = open_device("cuda", {});
};

void check(Device& device, const FileModel& model, const std::vector<Request>& rows,
           const std::vector<Completion>& expected, CacheCompute compute) {
  const auto host = open_device("cpu", {1, ""});
  const WeightPlan plan = model.plan(device.ops());
  WeightPrefetcher weights(model.checkpoint, model.spec, plan, device,
                           {.shares = {20, 40, 40}, .slots = 2, .disk_lanes = 2});
  OffloadedCaches caches(device, {.shares = {25, 35, 40}, .slots = 2, .compute = compute}, nullptr,
                         host.get());
  OffloadedHidden hidden({.shares = {0, 100, 0}, .slots = 2});
  const auto done = run_all(
      Generator(device, model.spec, weights, {3, 2, 9, 60}, DType::f32, &caches, &hidden), rows);
  for (size_t row = 0; row < rows.size(); row++) {
    CAPTURE(row, done[row].error);
    REQUIRE(same_result(done[row], expected[row]));
  }
  CHECK(caches.traffic().to_device > 0);
  CHECK(weights.traffic().file > 0);
}

}  // namespace

TEST_CASE("in any order of the streams rows are those of the CPU backend", "[devices][orders]") {
  const Watchdog watchdog(300);
  for (const char* kind : {"llama", "opt"}) {
    const FileModel model({kind});
    const std::vector<Request> rows = mixed_job(model.spec, 6, 5);
    const auto cpu = open_device("cpu", {1, ""});
    const auto expected = run_resident(*cpu, model, true, rows);
    for (const CacheCompute compute : {CacheCompute::device, CacheCompute::host}) {
      CAPTURE(kind, int(compute));
      OneThread one;
      check(one, model, rows, expected, compute);
    }
    const auto card = open_device("cuda", {});
    check(*card, model, rows, expected, CacheCompute::device);
  }
}
