// Hidden states come back from their homes as they left, moving what was said, in order.
#include <catch2/catch.hpp>

#include "offload/hidden_offload.hpp"
#include "runtime/backends/registry.hpp"
#include "test/end_to_end/check_edges.hpp"
#include "test/offload/lane_device.hpp"
#include "test/support/random.hpp"
#include "test/support/refusal.hpp"

using namespace hydrant;
using namespace hydrant::test;
using Catch::Matchers::Contains;

namespace {

constexpr HiddenShape kShape{
    .tokens = 500, .piece_tokens = 16, .pieces = 40, .width = 24, .stages = 4};
constexpr uint64_t kTokenBytes = 24 * 4;

std::vector<PieceTokens> random_step(Random& random) {
  std::vector<PieceTokens> pieces;
  int32_t token = 0;
  for (int64_t left = 1 + random.below(30); left > 0; left--) {
    pieces.push_back({token, int32_t(1 + random.below(kShape.piece_tokens))});
    token += pieces.back().tokens;
  }
  return pieces;
}

// Plays the loop's part: each stage finds what the one before has written, and writes anew.
void drive(Device& device, HiddenFeed& feed, const std::vector<std::vector<PieceTokens>>& steps,
           bool computes) {
  const auto compute = device.make_stream("compute", /*inline_work=*/true);
  std::vector<float> expected, found;
  const auto fill = [&](size_t step, int stage, size_t piece, int32_t tokens) {
    expected.assign(size_t(tokens * kShape.width),
                    float(step * 1000 + size_t(stage) * 100 + piece));
  };
  for (size_t step = 0; step < steps.size(); step++) {
    feed.begin_step(steps[step]);
    for (int stage = 0; stage < kShape.stages; stage++)
      for (size_t piece = 0; piece < steps[step].size(); piece++) {
        const int32_t tokens = steps[step][piece].tokens;
        const Tensor t = feed.acquire(stage, piece, *compute);
        REQUIRE(t.shape == Shape{tokens, kShape.width});
        if (stage > 0) {
          fill(step, stage - 1, piece, tokens);
          found.resize(expected.size());
          compute->copy(found.data(), t.data, found.size() * sizeof(float));
          if (computes) REQUIRE(found == expected);
        }
        fill(step, stage, piece, tokens);
        compute->copy(t.data, expected.data(), expected.size() * sizeof(float));
        feed.release(stage, piece, *compute);
      }
    compute->synchronize();
  }
}

std::vector<std::vector<PieceTokens>> steps_of(Random& random) {
  std::vector<std::vector<PieceTokens>> steps;
  for (int i = 0; i < 12; i++) steps.push_back(random_step(random));
  return steps;
}

}  // namespace

TEST_CASE("hidden states that wait on the host come back as they left", "[devices]") {
  Random random(41);
  for (const double on_device : {0.0, 30.0, 50.0, 100.0})
    for (const bool overlap : {true, false})
      for (int slots = 2; slots < 6; slots++) {
        LaneDevice device;
        OffloadedHidden homes(
            {.shares = {on_device, 100 - on_device, 0}, .slots = slots, .overlap = overlap});
        const auto steps = steps_of(random);
        const auto feed = homes.open(device, kShape);
        const HiddenNeed said = homes.need(kShape);
        CHECK(device.on_device == said.device);
        CHECK(device.on_host == said.host);
        CAPTURE(on_device, overlap, slots);
        drive(device, *feed, steps, true);
        uint64_t tokens = 0, predicted = 0;  // that move between two stages
        for (const auto& step : steps) {
          uint64_t on_host = 0, pieces = 0;
          const double all = double(step.back().token + step.back().tokens);
          for (const PieceTokens& p : step)
            if (double(2 * p.token + p.tokens) * 50 >= on_device * all && on_device < 100) {
              on_host += uint64_t(p.tokens);
              pieces++;
            }
          if (pieces > uint64_t(overlap ? slots : 1)) tokens += on_host;
          predicted += hidden_moves(
              {.shares = {on_device, 100 - on_device, 0}, .slots = slots, .overlap = overlap},
              kShape, step);
        }
        const uint64_t bytes = tokens * kTokenBytes * uint64_t(kShape.stages - 1);
        CHECK(homes.traffic().to_device == bytes);
        CHECK(homes.traffic().to_host == bytes);
        CHECK(predicted == bytes);
        CHECK((bytes > 0) == (on_device < 100));
      }
}

TEST_CASE("edges between the lanes of hidden states are enough, and each is needed") {
  Random random(42);
  const auto steps = steps_of(random);
  const auto run = [&](RecordingDevice& device, HiddenOffload options) {
    OffloadedHidden homes(options);
    drive(device, *homes.open(device, kShape), steps, false);
  };
  for (const double on_device : {0.0, 40.0})
    for (int slots = 2; slots < 5; slots++) {
      const HiddenOffload options{.shares = {on_device, 100 - on_device, 0}, .slots = slots};
      CAPTURE(on_device, slots);
      // Of each slot: the load lane waits for `free`, compute for `ready`, and for `free` in stage
      // 0; the store lane waits for `computed`.
      check_edges(size_t(3 * slots + 1), [&](RecordingDevice& device) { run(device, options); });
    }
  RecordingDevice alone;
  run(alone, {.shares = {0, 100, 0}, .overlap = false});
  CHECK(alone.races() == std::vector<std::string>{});
}

TEST_CASE("a failure on a lane of hidden states reaches who waits for them", "[devices]") {
  Random random(43);
  const auto steps = steps_of(random);
  for (const std::string lane : {"load_hidden", "store_hidden"})
    for (const int at : {0, 5}) {
      LaneDevice device;
      device.breaks_at[lane] = at;
      OffloadedHidden homes({.shares = {0, 100, 0}});
      const auto feed = homes.open(device, kShape);
      CHECK(refusal(Fault::io, [&] { drive(device, *feed, steps, false); }) ==
            "lane " + lane + " is broken");
    }
}

TEST_CASE("hidden states that cannot be placed are refused") {
  const auto refused = [](const HiddenOffload& options) {
    return refusal(Fault::bad_config, [&] { OffloadedHidden{options}; });
  };
  CHECK_THAT(refused({.shares = {50, 0, 50}}), Contains("placement.activations.disk: 50 percent"));
  CHECK_THAT(refused({.shares = {50, 0, 0}}), Contains("placement.activations: device 50"));
  CHECK_THAT(refused({.slots = 1}), Contains("1, must be 2 to"));
  CHECK_THAT(refused({.link = -1}), Contains("memory.link"));
}
