// Rows that a second device attends on the host, where they lie: the bits of a run that has all on
// one device, each side in its own memory, and exactly the bytes that were said.
#include <catch2/catch.hpp>

#include "offload/hidden_offload.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/engine/attention_memory.hpp"
#include "test/end_to_end/check_edges.hpp"
#include "test/offload/cache_job.hpp"
#include "test/offload/random_shares.hpp"
#include "test/offload/split_device.hpp"
#include "test/offload/watchdog.hpp"
#include "test/support/refusal.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

struct SplitEngine : Engine {
  explicit SplitEngine(const TinyModel& tiny, bool asynchronous = false)
      : Engine(tiny, std::make_unique<SplitDevice>(asynchronous)),
        split(static_cast<SplitDevice&>(*device)) {}
  SplitDevice& split;
};

CacheOffload options_of(const Shares& shares) {
  CacheOffload o{.shares = shares};
  o.compute = CacheCompute::host;
  return o;
}

CacheOffload random_options(Random& random) {
  CacheOffload o = options_of(random_shares(random));
  o.slots = int(2 + random.below(3));
  o.overlap = random.below(3) > 0;
  o.link = random.below(4) == 0 ? 1e9 : 0;
  o.disk_engine = random.below(2) == 0 ? DiskEngine::io_uring : DiskEngine::threads;
  return o;
}

std::vector<Completion> run(Generator& generator, const std::vector<Request>& rows) {
  std::vector<Completion> done(rows.size());
  Listener listener;
  listener.on_done = [&](size_t row, Completion&& c) { done[row] = std::move(c); };
  generator.run(rows, listener);
  return done;
}

}  // namespace

TEST_CASE("what the host attends has the resident run's bits, and each side its own memory") {
  const Watchdog watchdog(300);
  Random random(77);
  for (const std::string& kind : tiny_kinds())
    for (const DType kv : {DType::f32, DType::bf16}) {
      const TinyModel model = tiny_model(kind, 5, random.below(2) == 0 ? 64 : 0);
      const std::vector<Request> rows = cache_job(model.spec, 17, random.bits());
      Engine whole(model, 2);
      const auto expected = run_all(whole.generator({int32_t(rows.size()), 1}, kv), rows);
      for (int trial = 0; trial < 6; trial++) {
        SplitEngine engine(model, random.below(2) == 0);
        const CacheOffload options = random_options(random);
        const BatchShape shape{int32_t(1 + random.below(6)), int32_t(1 + random.below(3)),
                               int32_t(4 + random.below(60)), int32_t(30 + random.below(200))};
        CAPTURE(kind, name(kv), trial, options.shares.device, options.shares.host,
                options.shares.disk, options.overlap, shape.rows_per_group, shape.groups,
                shape.prefill_chunk);
        OffloadedCaches homes(*engine.device, options, nullptr, &engine.split.host());
        OffloadedHidden hidden({.shares = {40, 60, 0}});
        Generator generator(*engine.device, model.spec, engine.feed, shape, kv, &homes,
                            random.below(2) == 0 ? &hidden : nullptr);
        for (int again = 0; again < 2; again++) {
          const std::vector<Completion> done = run(generator, rows);
          for (size_t row = 0; row < rows.size(); row++) {
            CAPTURE(row, again, done[row].error);
            REQUIRE(same_bits(done[row], expected[row]));
          }
        }
        CHECK(engine.split.strays == std::vector<std::string>{});
        CHECK((engine.split.attended_on_host > 0) == (homes.traffic().to_host > 0));
      }
    }
}

TEST_CASE("a second device does nothing where the first computes in host memory, or may stage") {
  const TinyModel model = tiny_model("llama", 5);
  const std::vector<Request> rows = cache_job(model.spec, 6, 2);
  SplitEngine engine(model);
  Engine whole(model);
  for (const CacheCompute compute : {CacheCompute::device, CacheCompute::automatic}) {
    OffloadedCaches homes(*engine.device, {.shares = {20, 40, 40}, .compute = compute}, nullptr,
                          &engine.split.host());
    CHECK(homes.host() == nullptr);
    Generator generator(*engine.device, model.spec, engine.feed, {4, 2, 16, 64}, DType::f32,
                        &homes);
    run(generator, rows);
    CHECK(engine.split.operations_on_host == 0);
  }
  CHECK(OffloadedCaches(*whole.device, options_of({0, 100, 0}), nullptr, &engine.split.host())
            .host() == nullptr);
  CHECK_THAT(refusal(Fault::internal,
                     [&] {
                       OffloadedCaches(*engine.device, options_of({0, 100, 0}));
                     }),
             Catch::Matchers::Contains("nothing else is there"));
}

TEST_CASE("edges between the device's lanes and the host's are enough, and each is needed") {
  const TinyModel model = tiny_model("llama", 1);
  CacheOffload options = options_of({25, 50, 25});
  const auto job = [&](RecordingDevice& device) {
    device.computes_in_host_memory = false;
    const ModelWeights weights = on_device(model, device);
    ResidentWeights feed(device.ops(), weights);
    OffloadedCaches homes(device, options, nullptr, &device.host());
    run_all(Generator(device, model.spec, feed, {4, 2, 9, 100}, DType::f32, &homes),
            cache_job(model.spec, 12, 3));
  };
  // The host waits for `sent`, compute for `attended` and `settled`; the host for `ready` of two
  // images, the disk's lane for `stored` of both.
  check_edges(7, job);
  options.shares = {30, 70, 0};
  check_edges(3, job);
  // Without overlap the host's lane reads and writes the images as well.
  options = options_of({25, 50, 25});
  options.overlap = false;
  RecordingDevice alone;
  job(alone);
  CHECK(alone.races() == std::vector<std::string>{});
}

TEST_CASE("bytes that go to the host and back are the bytes predicted") {
  constexpr int32_t kTokens = 9;
  for (const char* kind : {"llama", "neox"})
    for (const int32_t groups : {1, 3}) {
      const TinyModel model = tiny_model(kind, 5);
      const BlockSpec& block = model.spec.block;
      SplitEngine engine(model);
      OffloadedCaches homes(*engine.device, options_of({20, 45, 35}), nullptr,
                            &engine.split.host());
      std::vector<Request> rows;
      for (int32_t i = 0; i < 6; i++)
        rows.push_back(request_of(model.spec, std::vector<int32_t>(size_t(3 + 10 * i), 7 + i),
                                  kTokens, {policy::Id::h2o, {0, 5, 4}}));
      const BatchShape batch{6 / groups, groups, 16, 1000};
      Generator generator(*engine.device, model.spec, engine.feed, batch, DType::f32, &homes);
      run(generator, rows);

      KvShape shape{groups, batch.rows_per_group, block.kv_heads, block.head_dim, {9, 9}};
      shape.heads = block.heads;
      const CacheLayout layout = homes.layout(shape, engine.split.ops());
      CacheMoves said;
      uint64_t tokens = 0;
      for (int32_t i = 0; i < 6; i++) {
        const int32_t group = i / batch.rows_per_group, place = i % batch.rows_per_group;
        const auto length = int32_t(rows[size_t(i)].prompt.size());
        if (place >= layout.homes(group).device) tokens += uint64_t(length + kTokens - 1);
        for (int32_t layer = 0; layer < model.spec.layers; layer++) {
          const policy::SlotLayout& slots = rows[size_t(i)].plans[size_t(layer)].slots;
          said += layout.prompt_moves(layer, group, place, length, slots);
          for (int32_t p = length; p < length + kTokens - 1; p++)
            said += layout.decode_moves(layer, group, place, p, slots);
        }
      }
      const CacheTraffic& moved = homes.traffic();
      const uint64_t passes = tokens * uint64_t(model.spec.layers) * sizeof(float);
      CAPTURE(kind, groups);
      CHECK(tokens > 0);
      CHECK(moved.to_host == passes * uint64_t(model.spec.qkv_width()));
      CHECK(moved.to_device == passes * uint64_t(block.heads) * uint64_t(block.head_dim));
      CHECK(said.to_host == moved.to_host);
      CHECK(said.to_device == moved.to_device);
      CHECK(said.read == moved.read);
    }
}

TEST_CASE("what attention on the host takes is what was said, and the device keeps no scores") {
  const TinyModel model = tiny_model("llama", 5);
  const BlockSpec& block = model.spec.block;
  const std::vector<Request> rows = cache_job(model.spec, 12, 4);
  const BatchShape batch{4, 2, 16, 100};
  const auto taken = [&](const CacheOffload& options) {
    SplitEngine engine(model);
    OffloadedCaches homes(*engine.device, options, nullptr, &engine.split.host());
    Generator generator(*engine.device, model.spec, engine.feed, batch, DType::bf16, &homes);
    const MemoryNeed need = generator.need(rows);
    engine.split.taken.clear();
    run(generator, rows);
    return std::pair(need, engine.split.taken);
  };
  const auto [need, memory] = taken(options_of({25, 50, 25}));
  auto [staged_need, staged_memory] = taken({.shares = {25, 50, 25}});
  const JobLimits limits = job_limits(model.spec, rows, batch);
  size_t slots = 0;
  for (const int32_t s : limits.slots) slots += size_t(align_up(s + 1, kRunSlots));
  // Six of eight rows are not on the device; the host has room for the scores of all.
  const size_t scores = slots * size_t(block.kv_heads) * 8;
  CHECK(staged_need.kv - need.kv == 6 * scores);
  const size_t victims = need.cache.host - staged_need.cache.host - 8 * scores;
  CHECK(victims > 0);
  CHECK(victims <= size_t(model.spec.layers) * 2 * 3 * 64);
  CHECK(need.cache.ring == 0);
  CHECK(need.cache.staging == staged_need.cache.staging);
  CHECK(staged_need.host_workspace == 0);
  // Pinned: what stands in the plan, but for scratch, which operations take themselves; and the
  // inputs and logits of a step, which are the same in both runs.
  Arena attention;
  AttentionMemory(attention, open_device("cpu", {1, ""})->ops(), model.spec, limits, DType::bf16);
  CHECK(attention.used() > 0);
  CHECK(need.host_workspace >= attention.used());
  const size_t others =
      staged_memory[Memory::pinned] - staged_need.cache.host - staged_need.cache.staging;
  CHECK(memory.at(Memory::pinned) ==
        others + need.cache.host + need.cache.staging + attention.used());
}

TEST_CASE("a failure on the host ends the run with it, finished rows stay, and the next is well") {
  const Watchdog watchdog(300);
  const TinyModel model = tiny_model("llama", 5);
  const std::vector<Request> rows = cache_job(model.spec, 24, 11);
  Engine whole(model);
  const auto expected = run_all(whole.generator({24, 1}), rows);
  for (const bool asynchronous : {false, true})
    for (const int64_t at : {0, 40, 300}) {
      SplitEngine engine(model, asynchronous);
      OffloadedCaches homes(*engine.device, options_of({25, 25, 50}), nullptr,
                            &engine.split.host());
      Generator generator(*engine.device, model.spec, engine.feed, {4, 2, 16, 100}, DType::f32,
                          &homes);
      size_t finished = 0;
      Listener listener;
      listener.on_done = [&](size_t row, Completion&& c) {
        finished++;
        CHECK(same_bits(c, expected[row]));
      };
      CAPTURE(asynchronous, at);
      engine.split.host_breaks_at = at;
      CHECK(refusal(Fault::io, [&] { generator.run(rows, listener); }) == "the host is broken");
      CHECK(finished < rows.size());
      finished = 0;
      generator.run(rows, listener);
      CHECK(finished == rows.size());
    }
}

TEST_CASE("a run with attention on the host may be cancelled anywhere") {
  const Watchdog watchdog(300);
  const TinyModel model = tiny_model("neox", 5);
  const std::vector<Request> rows = cache_job(model.spec, 7, 3);
  Engine whole(model);
  const auto expected = run_all(whole.generator({7, 1}), rows);
  SplitEngine engine(model, /*asynchronous=*/true);
  OffloadedCaches homes(*engine.device, options_of({30, 30, 40}), nullptr, &engine.split.host());
  Generator generator(*engine.device, model.spec, engine.feed, {2, 2, 16, 64}, DType::f32, &homes);
  for (int64_t allowed = 1; allowed < 100; allowed += 7) {
    int64_t asked = 0;
    Listener listener;
    listener.cancelled = [&] { return ++asked == allowed; };
    generator.run(rows, listener);
    const std::vector<Completion> next = run(generator, rows);
    for (size_t row = 0; row < rows.size(); row++) REQUIRE(same_bits(next[row], expected[row]));
  }
}
