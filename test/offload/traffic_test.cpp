// What offloaded weights move and take is what was said before.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "offload/weight_prefetcher.hpp"
#include "test/offload/file_model.hpp"
#include "test/offload/lane_device.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

constexpr int32_t kSteps = 5;

// All rows begin together and take one step a token.
std::vector<Request> even_job(const ModelSpec& spec) {
  std::vector<Request> rows;
  for (int32_t i = 0; i < 6; i++) rows.push_back(request_of(spec, {i, 7, 60 - i}, kSteps));
  return rows;
}

}  // namespace

TEST_CASE("bytes moved are the bytes predicted, whatever the number of groups", "[devices]") {
  for (const ModelChoice& choice :
       std::vector<ModelChoice>{{"opt"}, {"llama", DType::q4_0, FileKind::gguf}, {"neox"}})
    for (const bool overlap : {true, false})
      for (const Caching caching : {Caching::direct, Caching::cached})
        for (const int32_t groups : {1, 3}) {
          const FileModel model(choice);
          LaneDevice device;
          const WeightPlan plan = model.plan(device.ops());
          const WeightOffload options{
              .shares = {20, 45, 35}, .slots = 3, .overlap = overlap, .caching = caching};
          const OffloadMemory said =
              WeightPrefetcher::memory(model.checkpoint, model.spec, plan, device.ops(), options);
          WeightPrefetcher feed(model.checkpoint, model.spec, plan, device, options);
          CHECK(device.on_device == said.device_homes + said.ring);
          CHECK(device.on_host <= said.host_homes + said.staging);

          const StepTraffic step = feed.step_traffic();
          CHECK(step.from_host > 0);
          CHECK(step.from_disk > 0);
          run_with(device, model, feed, even_job(model.spec), {6 / groups, groups, 64, 64});
          StepTraffic all{kSteps * step.from_host, kSteps * step.from_disk, kSteps * step.file};
          // What the ring has brought for a step that does not come: the first stages that move.
          int ahead = overlap ? options.slots - 1 : 0;
          for (int stage = 0; ahead > 0; stage++) {
            const StepTraffic s = feed.step_traffic(stage);
            if (s.from_host + s.from_disk == 0) continue;
            all.from_host += s.from_host;
            all.from_disk += s.from_disk;
            ahead--;
          }
          CAPTURE(choice.kind, overlap, groups);
          const WeightTraffic& moved = feed.traffic();
          feed.settle();
          all.file += feed.ahead().file;  // into free buffers, for stages whose turn is to come
          CHECK(moved.from_host == all.from_host);
          CHECK(moved.from_disk == all.from_disk);
          CHECK(moved.file == all.file);
          if (overlap) CHECK(device.copied == all.from_host + all.from_disk);
        }
}

TEST_CASE("without offloading nothing moves, and the homes are the resident weights", "[devices]") {
  const FileModel model({"llama"});
  LaneDevice device;
  const WeightPlan plan = model.plan(device.ops());
  WeightPrefetcher feed(model.checkpoint, model.spec, plan, device, {});
  CHECK(feed.memory().device_homes == plan.bytes);
  CHECK(feed.memory().ring == 0);
  if (device.is_host()) CHECK(device.on_host == 0);  // a card's homes are filled through a buffer
  run_with(device, model, feed, even_job(model.spec), {6, 1, 64, 64});
  CHECK(device.copied == 0);
  CHECK(feed.traffic().file == 0);
}

TEST_CASE("of a table in the file only the rows that are looked up are read", "[devices]") {
  const FileModel model({"llama"});
  LaneDevice device;
  const WeightPlan plan = model.plan(device.ops());
  WeightPrefetcher feed(model.checkpoint, model.spec, plan, device, {.shares = {0, 0, 100}});
  run_with(device, model, feed, even_job(model.spec), {6, 1, 64, 64});
  CHECK(feed.step_traffic(0) == StepTraffic{});
  CHECK(feed.traffic().rows == 6 * (3 + kSteps - 1));  // the last token is not fed
}

TEST_CASE("a link that waits between copies does not make up for it", "[devices]") {
  using Clock = std::chrono::steady_clock;
  const auto device = open_device(engine_device(), {1, ""});
  const auto lane = device->make_stream("load_weights", false);
  const std::vector<char> from(1000, 'x');
  std::vector<char> to(from.size());
  Link link(1e6);  // 1 ms a copy
  const auto begin = Clock::now();
  for (int i = 0; i < 50; i++) {
    link.copy(*lane, to.data(), from.data(), from.size());
    lane->fill(nullptr, 0, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  }
  lane->synchronize();
  // 100 ms, less what sleeps were late by: that was time as well.
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(95));
}

TEST_CASE("a copy over a slow link takes its time at least", "[devices]") {
  using Clock = std::chrono::steady_clock;
  const auto device = open_device(engine_device(), {1, ""});
  const auto lane = device->make_stream("load_weights", false);
  const std::vector<char> from(100000, 'x');
  std::vector<char> to(from.size());
  Link link(2e6);  // 50 ms a copy
  const auto begin = Clock::now();
  for (int i = 0; i < 3; i++) link.copy(*lane, to.data(), from.data(), from.size());
  lane->synchronize();
  // 150 ms; on virtual machines two cores' clocks have been seen to differ by almost one.
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(145));
  CHECK(to == from);
}

TEST_CASE("a paced copy of many pieces moves every byte", "[devices]") {
  const auto device = open_device(engine_device(), {1, ""});
  const auto lane = device->make_stream("load_weights", false);
  std::vector<char> from((size_t{5} << 20) + 3);
  for (size_t i = 0; i < from.size(); i++) from[i] = char(i * 31 + i / 4099);
  std::vector<char> to(from.size() + 1, 0);
  Link link(1e9);
  link.copy(*lane, to.data(), from.data(), from.size());
  lane->synchronize();
  CHECK(std::equal(from.begin(), from.end(), to.begin()));
  CHECK(to.back() == 0);
}
