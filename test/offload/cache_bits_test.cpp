// Where rows of the cache and hidden states are at home changes no bit of any row.
#include <catch2/catch.hpp>

#include "offload/hidden_offload.hpp"
#include "test/offload/cache_job.hpp"
#include "test/offload/random_shares.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

CacheOffload random_options(Random& random) {
  CacheOffload o{.shares = random_shares(random)};
  o.slots = int(2 + random.below(4));
  o.overlap = random.below(4) > 0;
  o.compute = random.below(2) == 0 ? CacheCompute::device : CacheCompute::automatic;
  o.link = random.below(4) == 0 ? 1e9 : 0;
  o.folder = "/var/tmp";
  o.caching = random.below(2) == 0 ? Caching::direct : Caching::cached;
  o.disk_engine = random.below(2) == 0 ? DiskEngine::io_uring : DiskEngine::threads;
  o.disk_requests = int(1 + random.below(5));
  return o;
}

HiddenOffload random_hidden(Random& random) {
  const auto device = double(random.below(3) * 40);
  HiddenOffload o{.shares = {device, 100 - device, 0}};
  o.slots = int(2 + random.below(3));
  o.overlap = random.below(4) > 0;
  return o;
}

}  // namespace

TEST_CASE("any home of the cache, depth, overlap and group split gives the resident run's bits",
          "[devices]") {
  const bool emulated = !test_backend().empty();  // which is slow
  Random random(2024);
  for (const std::string& kind : tiny_kinds())
    for (const DType kv : {DType::f32, DType::bf16, DType::f16}) {
      if (emulated && random.below(3) > 0) continue;
      // Runs of whole units of the file, and runs that share them.
      const int32_t head_dim = random.below(2) == 0 ? 64 : random.below(2) == 0 ? 40 : 0;
      Engine engine(tiny_model(kind, 5, head_dim), 2);
      const std::vector<Request> rows =
          cache_job(engine.model.spec, emulated ? 6 : 17, random.bits());
      const auto expected = run_all(engine.generator({int32_t(rows.size()), 1}, kv), rows);
      for (int trial = 0; trial < (emulated ? 3 : 6); trial++) {
        const CacheOffload options = random_options(random);
        const BatchShape shape{int32_t(1 + random.below(6)), int32_t(1 + random.below(3)),
                               int32_t(4 + random.below(60)), int32_t(30 + random.below(200))};
        CAPTURE(kind, name(kv), head_dim, trial, options.shares.device, options.shares.host,
                options.shares.disk, options.slots, options.overlap, int(options.compute),
                shape.rows_per_group, shape.groups, shape.prefill_chunk);
        OffloadedCaches homes(*engine.device, options);
        OffloadedHidden hidden(random_hidden(random));
        Generator generator(*engine.device, engine.model.spec, engine.feed, shape, kv, &homes,
                            random.below(3) > 0 ? &hidden : nullptr);
        for (int again = 0; again < 2; again++) {
          std::vector<Completion> done(rows.size());
          Listener listener;
          listener.on_done = [&](size_t row, Completion&& c) { done[row] = std::move(c); };
          generator.run(rows, listener);
          for (size_t row = 0; row < rows.size(); row++) {
            CAPTURE(row, again, done[row].error);
            REQUIRE(same_result(done[row], expected[row]));
          }
        }
      }
    }
}
