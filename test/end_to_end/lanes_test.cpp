// The loop with one thread a lane: the same bits as inline, and (under ThreadSanitizer) no two
// lanes that touch the same memory without an edge between them.
#include <catch2/catch.hpp>

#include "runtime/engine/generation_loop.hpp"
#include "runtime/engine/resident_feed.hpp"
#include "test/end_to_end/check_edges.hpp"
#include "test/end_to_end/lane_feeds.hpp"
#include "test/end_to_end/recording_device.hpp"
#include "test/end_to_end/run_job.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;
using policy::Id;

namespace {

std::vector<Request> job(const ModelSpec& spec) {
  const NaivePolicy policies[] = {
      {Id::full, {}},
      {Id::h2o, {0, 5, 4}},
      {Id::sinks, {2, 0, 7}},
      {Id::tova, {0, 8, 1}},
      {Id::local, {0, 0, 9}},
      {Id::h2o_promote, {0, 4, 6}},
      {Id::h2o,
       {0, 7, 3},
       spec.block.rotary.dims ? policy::Positions::cache : policy::Positions::original}};
  Random random(7);
  std::vector<Request> rows;
  for (int i = 0; i < 14; i++) {
    std::vector<int32_t> prompt(size_t(1 + random.below(30)));
    for (int32_t& id : prompt) id = int32_t(random.below(spec.vocab));
    rows.push_back(request_of(spec, prompt, int32_t(2 + random.below(8)), policies[i % 7]));
    rows.back().report_kept = true;
  }
  return rows;
}

constexpr const char* kLaneNames[] = {"compute", "load_weights", "load_cache", "store_cache"};

// Lanes are named in the order compute, weights in, caches in, caches out; equal numbers share one.
std::vector<Completion> run_on_lanes(Device& device, const TinyModel& model,
                                     const std::vector<Request>& rows, const BatchShape& shape,
                                     const std::array<int, 4>& lanes, bool threads, int slots) {
  const ModelSpec& spec = model.spec;
  const JobLimits limits = job_limits(spec, rows, shape);
  KvCache cache(device, {limits.groups, limits.rows_per_group, spec.block.kv_heads,
                         spec.block.head_dim, limits.slots, DType::f32});
  StepMemory memory(device, spec, limits, DType::f32);
  std::vector<std::unique_ptr<Stream>> streams;
  for (const int lane : lanes)
    if (size_t(lane) == streams.size())
      streams.push_back(device.make_stream(kLaneNames[size_t(lane)], /*inline_work=*/!threads));
  const auto stream = [&](int use) -> Stream& { return *streams[size_t(lanes[size_t(use)])]; };
  LaneWeights weights(model, device, stream(1), slots);
  LaneCaches caches(device, cache, stream(2), stream(3), slots);
  ResidentHidden hidden(device, hidden_shape(spec, limits));
  GenerationLoop loop({device.ops(), spec, weights, caches, hidden, cache, memory, stream(0)},
                      limits);
  std::vector<Completion> done(rows.size());
  Listener listener;
  listener.on_done = [&](size_t row, Completion&& c) { done[row] = std::move(c); };
  loop.run(rows, shape, listener);
  for (auto& s : streams) s->synchronize();
  return done;
}

}  // namespace

TEST_CASE("moving weights and caches on lanes of their own changes no bit", "[lanes][devices]") {
  // An emulated device is slow: not all in one lane there, which is what runs without lanes have,
  // and no ring deeper than the stages. All other values meet each policy: every job has rows of
  // all.
  const bool emulated = !test_backend().empty();
  for (const char* kind : {"opt-post", "llama"}) {
    Engine engine(tiny_model(kind, 44));
    const std::vector<Request> rows = job(engine.model.spec);
    for (const BatchShape& shape : {BatchShape{3, 2, 9, 40}, BatchShape{2, 3, 64, 64}}) {
      const auto expected = run_all(engine.generator(shape), rows);
      for (const std::array<int, 4>& lanes :
           std::vector<std::array<int, 4>>{{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 1, 2}, {0, 1, 2, 3}})
        for (const bool threads : {false, true})
          for (const int slots : {2, 5}) {
            if (emulated && (lanes[1] == 0 || slots == 5)) continue;
            CAPTURE(kind, lanes[1], lanes[2], lanes[3], threads, slots, shape.groups);
            const auto done =
                run_on_lanes(*engine.device, engine.model, rows, shape, lanes, threads, slots);
            for (size_t row = 0; row < rows.size(); row++) {
              CAPTURE(row);
              REQUIRE(same_bits(done[row], expected[row]));
            }
          }
    }
  }
}

TEST_CASE("edges between lanes are enough, and each of them is needed", "[lanes]") {
  const BatchShape shape{3, 2, 9, 40};
  const TinyModel model = tiny_model("llama", 1);
  const std::vector<Request> rows = job(model.spec);
  // Two slots: a slot is used several times in a step, where the host waits for nothing.
  const auto run = [&](RecordingDevice& device) {
    run_on_lanes(device, model, rows, shape, {0, 1, 2, 3}, /*threads=*/false, /*slots=*/2);
  };
  // Ready and free of two weight slots and of two cache slots, computed, stored.
  check_edges(10, run);
}
