// Where the system lets little be pinned, homes lie in pageable memory: kernels touch none of it,
// and the bits are those of a run that has all on the device.
#include <catch2/catch.hpp>

#include "offload/hidden_offload.hpp"
#include "offload/weight_prefetcher.hpp"
#include "test/offload/cache_job.hpp"
#include "test/offload/file_model.hpp"
#include "test/offload/random_shares.hpp"
#include "test/offload/split_device.hpp"
#include "test/support/refusal.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

struct SplitEngine : Engine {
  explicit SplitEngine(const TinyModel& tiny)
      : Engine(tiny, std::make_unique<SplitDevice>()), split(static_cast<SplitDevice&>(*device)) {}
  SplitDevice& split;
};

}  // namespace

TEST_CASE("a cache that cannot be pinned is copied whole instead of written by kernels") {
  Random random(31);
  uint64_t pinned = 0, pageable = 0;
  for (const std::string& kind : tiny_kinds()) {
    const TinyModel model = tiny_model(kind, 5, random.below(2) == 0 ? 64 : 0);
    const std::vector<Request> rows = cache_job(model.spec, 11, random.bits());
    Engine whole(model, 2);
    const auto expected = run_all(whole.generator({int32_t(rows.size()), 1}), rows);
    CacheOffload options{.shares = random_shares(random)};
    options.shares = {options.shares.device / 2, 100 - options.shares.device / 2, 0};
    if (random.below(2) == 0) std::swap(options.shares.host, options.shares.disk);
    for (const CacheCompute compute : {CacheCompute::automatic, CacheCompute::host})
      for (const bool overlap : {false, true})
        for (const bool pins : {true, false}) {
          options.compute = compute;
          options.overlap = overlap;
          SplitEngine engine(model);
          if (!pins)
            engine.split.unpinned = {"the KV cache on the host", "attention on the host",
                                     "scores of the KV cache on the host",
                                     "hidden states on the host"};
          if (pins && compute == CacheCompute::automatic)
            engine.split.reached.insert("the KV cache on the host");
          OffloadedCaches homes(*engine.device, options, nullptr, &engine.split.host());
          OffloadedHidden hidden({.shares = {50, 50, 0}});
          Generator generator(*engine.device, engine.model.spec, engine.feed, {3, 2, 9, 60},
                              DType::f32, &homes, &hidden);
          std::vector<Completion> done(rows.size());
          Listener listener;
          listener.on_done = [&](size_t row, Completion&& c) { done[row] = std::move(c); };
          generator.run(rows, listener);
          CAPTURE(kind, int(compute), overlap, pins, options.shares.host, engine.split.strays);
          CHECK(engine.split.strays.empty());
          for (size_t row = 0; row < rows.size(); row++) {
            CAPTURE(row, done[row].error);
            REQUIRE(same_result(done[row], expected[row]));
          }
          if (compute == CacheCompute::automatic)
            (pins ? pinned : pageable) += homes.traffic().to_host;
        }
  }
  CHECK(pinned > 0);
  CHECK(pageable > pinned);  // a step brings back all that a row has, not two tokens
}

TEST_CASE("weights that cannot be pinned are copied, and what kernels look up in must be") {
  Random random(32);
  const std::string looked_up = "rows that kernels look up on the host";
  for (const bool tied : {false, true}) {
    const FileModel model({"opt", DType::f32, FileKind::hugging_face, tied});
    const std::vector<Request> rows = mixed_job(model.spec, 4, 4);
    SplitDevice device;
    device.reached.insert(looked_up);
    device.unpinned = {"the weights on the host", "weights on their way to the device"};
    const WeightPlan plan = model.plan(device.ops());
    const auto expected = run_resident(device, model, /*exact=*/true, rows);
    for (const Shares shares : {Shares{0, 100, 0}, Shares{20, 50, 30}, Shares{0, 0, 100}}) {
      WeightPrefetcher feed(model.checkpoint, model.spec, plan, device, {.shares = shares});
      const auto done = run_with(device, model, feed, rows, {2, 2, 16, 60});
      CAPTURE(tied, shares.host, device.strays);
      CHECK(device.strays.empty());
      for (size_t row = 0; row < rows.size(); row++) REQUIRE(same_result(done[row], expected[row]));
    }
    device.unpinned.insert(looked_up);
    CHECK_THAT(
        refusal(
            Fault::out_of_memory,
            [&] {
              WeightPrefetcher(model.checkpoint, model.spec, plan, device, {.shares = {0, 100, 0}});
            }),
        Catch::StartsWith(looked_up));
  }
}
