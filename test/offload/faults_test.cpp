// Whatever goes wrong under way: one error that names it, and no hang (an alarm ends the process).
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>

#include "offload/weight_prefetcher.hpp"
#include "test/offload/file_model.hpp"
#include "test/offload/lane_device.hpp"
#include "test/offload/watchdog.hpp"
#include "test/support/refusal.hpp"

using namespace hydrant;
using namespace hydrant::test;
using Catch::Matchers::Contains;

namespace {

// The error of a run in whose middle `damage` happens.
template <class Damage>
std::string refused_run(Fault fault, Device& device, const FileModel& model, WeightFeed& feed,
                        const Damage& damage) {
  const std::vector<Request> rows = mixed_job(model.spec, 4, 20);
  Generator generator(device, model.spec, feed, {2, 2, 64, 64}, DType::f32);
  int tokens = 0;
  Listener listener;
  listener.on_token = [&](size_t, const TokenChoice&) {
    if (++tokens == 6) damage();
    return true;
  };
  return refusal(fault, [&] { generator.run(rows, listener); });
}

}  // namespace

TEST_CASE("a file that is cut while it is read ends the run, naming file, tensor and place",
          "[devices]") {
  const Watchdog watchdog(60);
  for (const bool overlap : {true, false})
    for (const Caching caching : {Caching::direct, Caching::cached}) {
      const FileModel model({"llama"});
      LaneDevice device;
      const WeightPlan plan = model.plan(device.ops());
      WeightPrefetcher feed(
          model.checkpoint, model.spec, plan, device,
          {.shares = {10, 10, 80}, .slots = 3, .overlap = overlap, .caching = caching});
      const auto size = uint64_t(std::filesystem::file_size(model.path));
      const std::string error = refused_run(
          Fault::io, device, model, feed, [&] { std::filesystem::resize_file(model.path, 8192); });
      CAPTURE(overlap);
      CHECK_THAT(error, Contains(model.path) && Contains("weight: the file ends at byte 8192") &&
                            Contains(std::to_string(size)));
      // And so does the next run.
      CHECK(refused_run(Fault::io, device, model, feed, [] {}) != "nothing was refused");
    }
}

TEST_CASE("a file that is written while it is read ends the run", "[devices]") {
  const Watchdog watchdog(60);
  for (const Caching caching : {Caching::direct, Caching::cached}) {
    const FileModel model({"llama"});
    LaneDevice device;
    const WeightPlan plan = model.plan(device.ops());
    WeightPrefetcher feed(model.checkpoint, model.spec, plan, device,
                          {.shares = {10, 10, 80}, .caching = caching});
    const auto before = std::filesystem::last_write_time(model.path);
    const std::string error = refused_run(Fault::io, device, model, feed, [&] {
      std::fstream file(model.path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(-1, std::ios::end);
      file.put('x');
      file.close();
      // Clocks of file systems may stand still for some milliseconds.
      std::filesystem::last_write_time(model.path, before + std::chrono::seconds(1));
    });
    CHECK_THAT(error, Contains(model.path) && Contains("weight: the file was changed after it"));
  }
}

TEST_CASE("a value that becomes infinite in the file is refused when it is read", "[devices]") {
  const Watchdog watchdog(60);
  const FileModel model({"opt"});
  LaneDevice device;
  const WeightPlan plan = model.plan(device.ops());
  const StoredTensor* down = model.checkpoint.find("model.decoder.layers.1.fc2.weight");
  REQUIRE(down);
  {  // before anybody reads ahead, who would see that the file was changed, and nothing else tells
    const auto before = std::filesystem::last_write_time(model.path);
    std::fstream file(model.path, std::ios::binary | std::ios::in | std::ios::out);
    const float infinite = std::numeric_limits<float>::infinity();
    file.seekp(std::streamoff(down->offset) + 5 * down->columns * 4);
    file.write(reinterpret_cast<const char*>(&infinite), sizeof infinite);
    file.close();
    std::filesystem::last_write_time(model.path, before);
  }
  WeightPrefetcher feed(model.checkpoint, model.spec, plan, device, {.shares = {0, 0, 100}});
  const std::string error = refused_run(Fault::bad_file, device, model, feed, [] {});
  CHECK_THAT(error, Contains(model.path) &&
                        Contains("tensor model.decoder.layers.1.fc2.weight holds a value that is "
                                 "not finite in row 5"));
}

TEST_CASE("a failure on any lane ends the run with that failure", "[devices]") {
  const Watchdog watchdog(60);
  for (const std::string lane : {"load_weights", "disk 1", "look_up"})
    for (const int at : {0, 1, 17}) {
      const FileModel model({"llama"});
      LaneDevice device;
      device.breaks_at[lane] = at;
      const WeightPlan plan = model.plan(device.ops());
      WeightPrefetcher feed(model.checkpoint, model.spec, plan, device,
                            {.shares = {5, 45, 50}, .disk_lanes = 2});
      CAPTURE(lane, at);
      // A card says first in which part of the run.
      CHECK_THAT(refused_run(Fault::io, device, model, feed, [] {}),
                 Catch::EndsWith("lane " + lane + " is broken"));
    }
}

TEST_CASE("another file in the place of the opened one is refused", "[devices]") {
  const FileModel model({"llama"});
  LaneDevice device;
  const WeightPlan plan = model.plan(device.ops());
  std::filesystem::copy_file(model.path, model.path + ".new");
  std::filesystem::rename(model.path + ".new", model.path);
  const auto open = [&] {
    WeightPrefetcher(model.checkpoint, model.spec, plan, device, {.shares = {0, 0, 100}});
  };
  CHECK_THAT(refusal(Fault::bad_file, open), Contains("another file has taken its place"));
  std::filesystem::remove(model.path);
  CHECK_THAT(refusal(Fault::bad_file, open), Contains(model.path));
}

TEST_CASE("options that cannot be are refused before anything is read", "[devices]") {
  const FileModel model({"llama"});
  LaneDevice device;
  const WeightPlan plan = model.plan(device.ops());
  const auto refused = [&](const WeightOffload& options) {
    return refusal(Fault::bad_config,
                   [&] { WeightPrefetcher(model.checkpoint, model.spec, plan, device, options); });
  };
  CHECK_THAT(refused({.slots = 1}), Contains("prefetch.weight_slots: 1, must be 2 to"));
  CHECK_THAT(refused({.disk_lanes = 0}), Contains("prefetch.disk_lanes"));
  CHECK_THAT(refused({.link = -1}), Contains("memory.link"));
  CHECK_THAT(refused({.shares = {50, 0, 0}}), Contains("must be 100"));
  CHECK(device.on_device + device.on_host == 0);
}
