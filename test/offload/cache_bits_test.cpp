// Where rows of the cache and hidden states are at home changes no bit of any row.
#include <catch2/catch.hpp>

#include "offload/hidden_offload.hpp"
#include "test/offload/cache_job.hpp"
#include "test/offload/random_shares.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

struct Cell {
  CacheOffload caches;
  HiddenOffload hidden;
  bool hidden_moves;
  BatchShape shape;
};

Cell random_cell(Random& random) {
  Cell c;
  CacheOffload& o = c.caches;
  o.shares = random_shares(random);
  o.slots = int(2 + random.below(4));
  o.overlap = random.below(4) > 0;
  o.compute = random.below(2) == 0 ? CacheCompute::device : CacheCompute::automatic;
  o.link = random.below(4) == 0 ? 1e9 : 0;
  o.folder = "/var/tmp";
  o.caching = random.below(2) == 0 ? Caching::direct : Caching::cached;
  o.disk_engine = random.below(2) == 0 ? DiskEngine::io_uring : DiskEngine::threads;
  o.disk_requests = int(1 + random.below(5));
  const auto device = double(random.below(3) * 40);
  c.hidden.shares = {device, 100 - device, 0};
  c.hidden.slots = int(2 + random.below(3));
  c.hidden.overlap = random.below(4) > 0;
  c.hidden_moves = random.below(3) > 0;
  c.shape = {int32_t(1 + random.below(6)), int32_t(1 + random.below(3)),
             int32_t(4 + random.below(60)), int32_t(30 + random.below(200))};
  return c;
}

// The same for an emulated device, which is slow: each job has rows of every policy there, and in
// ten cells every value of what follows comes up, so each of them meets each policy. (On a card
// `automatic` means the device; what the host attends for it is test/cuda/host_side_test.cpp.)
Cell cell_in_turn(size_t cell, Random& random) {
  Cell c = random_cell(random);
  c.caches.shares = shares_in_turn(cell);
  c.caches.overlap = cell % 3 > 0;
  c.caches.slots = int(2 + cell % 4);
  c.caches.caching = cell % 2 == 0 ? Caching::direct : Caching::cached;
  c.caches.disk_engine = cell / 4 % 2 == 0 ? DiskEngine::io_uring : DiskEngine::threads;
  c.caches.link = cell == 5 ? 1e9 : 0;
  c.hidden_moves = cell / 2 % 2 == 0;
  c.hidden.overlap = cell != 4;
  c.shape.groups = int32_t(1 + cell / 2 % 3);
  c.shape.rows_per_group = int32_t(2 + cell % 5);
  return c;
}

}  // namespace

TEST_CASE("any home of the cache, depth, overlap and group split gives the resident run's bits",
          "[devices]") {
  const bool emulated = !test_backend().empty();
  constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};
  Random random(2024);
  for (size_t kind = 0; kind < tiny_kinds().size(); kind++)
    for (size_t type = 0; type < std::size(kTypes); type++) {
      if (emulated && type != kind % 3) continue;
      // Runs of whole units of the file, and runs that share them.
      const int32_t head_dim = random.below(2) == 0 ? 64 : random.below(2) == 0 ? 40 : 0;
      Engine engine(tiny_model(tiny_kinds()[kind], 5, head_dim), 2);
      const std::vector<Request> rows =
          cache_job(engine.model.spec, emulated ? 8 : 17, random.bits());
      const auto expected =
          run_all(engine.generator({int32_t(rows.size()), 1}, kTypes[type]), rows);
      for (size_t trial = 0; trial < (emulated ? 2u : 6u); trial++) {
        const Cell cell = emulated ? cell_in_turn(2 * kind + trial, random) : random_cell(random);
        const CacheOffload& options = cell.caches;
        CAPTURE(tiny_kinds()[kind], name(kTypes[type]), head_dim, trial, options.shares.device,
                options.shares.host, options.shares.disk, options.slots, options.overlap,
                int(options.compute), cell.shape.rows_per_group, cell.shape.groups,
                cell.shape.prefill_chunk);
        OffloadedCaches homes(*engine.device, options);
        OffloadedHidden hidden(cell.hidden);
        Generator generator(*engine.device, engine.model.spec, engine.feed, cell.shape,
                            kTypes[type], &homes, cell.hidden_moves ? &hidden : nullptr);
        for (int again = 0; again < 2; again++) {
          std::vector<Completion> done(rows.size());
          Listener listener;
          listener.on_done = [&](size_t row, Completion&& c) { done[row] = std::move(c); };
          generator.run(rows, listener);
          for (size_t row = 0; row < rows.size(); row++) {
            CAPTURE(row, again, done[row].error);
            REQUIRE(same_result(done[row], expected[row], type == 0 ? 0 : kFlippedRounding));
          }
        }
      }
    }
}
