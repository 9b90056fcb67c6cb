// Whatever goes wrong with an offloaded cache: rows that lose theirs end with one error, the others
// end as ever; a broken lane ends the run, and rows that are done stay so. No hang (an alarm ends
// the process), no file.
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "test/offload/cache_job.hpp"
#include "test/offload/lane_device.hpp"
#include "test/offload/split_device.hpp"
#include "test/offload/watchdog.hpp"
#include "test/support/refusal.hpp"
#include "test/support/temporary_folder.hpp"

using namespace hydrant;
using namespace hydrant::test;
using Catch::Matchers::Contains;

namespace {

using Damage = std::function<void(DiskRequest&)>;

// Of its reads, or of its writes, those from number `first` to `last` go wrong.
class BadFile final : public DiskFile {
 public:
  struct Trouble {
    bool write = false;
    int first = 0, last = 0;
    Damage damage;
  };
  BadFile(std::unique_ptr<DiskFile> inner, const Trouble& trouble, std::atomic<int>& damaged)
      : inner_(std::move(inner)), trouble_(trouble), damaged_(damaged) {}
  void run(std::span<DiskRequest> requests) override {
    inner_->run(requests);
    for (DiskRequest& r : requests) {
      if (r.write != trouble_.write) continue;
      if (seen_ >= trouble_.first && seen_ <= trouble_.last) {
        trouble_.damage(r);
        damaged_++;
      }
      seen_++;
    }
  }

 private:
  std::unique_ptr<DiskFile> inner_;
  Trouble trouble_;
  std::atomic<int>& damaged_;
  int seen_ = 0;
};

struct Outcome {
  std::vector<Completion> rows;
  int damaged = 0;
};

constexpr BatchShape kShape{4, 2, 16, 100};
constexpr Shares kShares{25, 25, 50};

Outcome run_with(Engine& engine, const std::vector<Request>& rows, CacheOffload options,
                 const BadFile::Trouble& trouble, Device* host = nullptr) {
  const TemporaryFolder folder;
  options.shares = kShares;
  options.folder = folder.path();
  std::atomic<int> damaged = 0;
  Outcome outcome;
  {
    OffloadedCaches homes(*engine.device, options, nullptr, host,
                          [&](const CacheOffload& o, uint64_t bytes) -> std::unique_ptr<DiskFile> {
                            return std::make_unique<BadFile>(
                                OffloadedCaches::open_spill_file(o, bytes), trouble, damaged);
                          });
    outcome.rows = run_with_caches(engine, rows, kShape, DType::f32, homes);
    CHECK(std::filesystem::is_empty(folder.path()));
  }
  outcome.damaged = damaged;
  return outcome;
}

void stop(DiskRequest& r, int error, size_t moved) {
  r.moved = moved;
  r.error = error;
}

}  // namespace

TEST_CASE("a request that fails costs the row that it was for, and no other", "[devices]") {
  const Watchdog watchdog(300);
  Engine engine(tiny_model("llama", 5, 64), 2);
  auto split_device = std::make_unique<SplitDevice>();
  const auto cpu = open_device("cpu", {1, ""});
  Device& host = engine.device->is_host() ? split_device->host() : *cpu;
  Engine split(engine.model, std::move(split_device));
  // An emulated card takes minutes for all of it: fewer rows there, and of each case one cell, such
  // that each value of an axis comes up, and, with the policies among the rows, each of those.
  const bool emulated = !test_backend().empty();
  const std::vector<Request> rows = cache_job(engine.model.spec, emulated ? 10 : 24, 8);
  const auto expected = run_all(engine.generator({24, 1}), rows);
  struct Case {
    bool write;
    Damage damage;
    std::string error;
  };
  const Case cases[] = {
      {false, [](DiskRequest& r) { stop(r, EIO, 0); }, "reading the row's cache in layer"},
      {false, [](DiskRequest& r) { stop(r, EIO, 4096); }, ": Input/output error"},
      {false, [](DiskRequest& r) { stop(r, 0, 8192); }, ": 8192 bytes of "},
      {true, [](DiskRequest& r) { stop(r, EIO, 0); }, "writing the row's cache in layer"},
      {true, [](DiskRequest& r) { stop(r, ENOSPC, 0); }, ": No space left on device"}};
  // Attended by the device, staged or in place, or by the host.
  const std::pair<Engine*, CacheCompute> who[] = {
      {&engine, CacheCompute::device}, {&engine, CacheCompute::host}, {&split, CacheCompute::host}};
  int cell = 0;
  for (const Case& c : cases)
    for (const auto& [by, compute] : who)
      for (const bool overlap : {true, false})
        for (const int at : {0, emulated ? 6 : 20}) {
          if (emulated && (by == &split || cell++ % 5 > 0)) continue;
          const Outcome o = run_with(*by, rows, {.overlap = overlap, .compute = compute},
                                     {c.write, at, at, c.damage}, &host);
          CAPTURE(c.error, by == &split, int(compute), overlap, at);
          REQUIRE(o.damaged == 1);
          size_t lost = 0;
          for (size_t row = 0; row < rows.size(); row++) {
            CAPTURE(row, o.rows[row].error);
            if (o.rows[row].finish != Finish::failed) {
              CHECK(same_result(o.rows[row], expected[row]));
              continue;
            }
            lost++;
            CHECK_THAT(o.rows[row].error, Contains("memory.folder: ") && Contains(c.error));
            // The tokens before are right.
            for (size_t t = 0; t + 1 < o.rows[row].tokens.size(); t++)
              CHECK(o.rows[row].tokens[t].id == expected[row].tokens[t].id);
          }
          // A write may fail when its row is done.
          CHECK(lost <= 1);
          if (!c.write) CHECK(lost == 1);
        }
}

TEST_CASE("a disk that does nothing any more costs its rows, and what is in memory goes on",
          "[devices]") {
  const Watchdog watchdog(300);
  Engine engine(tiny_model("opt", 5, 64), 2);
  const std::vector<Request> rows = cache_job(engine.model.spec, 24, 9);
  const auto expected = run_all(engine.generator({24, 1}), rows);
  for (const bool write : {false, true})
    for (const bool overlap : {true, false}) {
      const Outcome o = run_with(engine, rows, {.overlap = overlap},
                                 {write, 20, 1 << 30, [](DiskRequest& r) { stop(r, EIO, 0); }});
      size_t lost = 0;
      for (size_t row = 0; row < rows.size(); row++) {
        lost += o.rows[row].finish == Finish::failed;
        if (o.rows[row].finish != Finish::failed) CHECK(same_result(o.rows[row], expected[row]));
      }
      CHECK(lost > 2);
      CHECK(lost < rows.size() - 4);
    }
}

TEST_CASE("a write that fails when its row is done costs nobody anything", "[devices]") {
  const Watchdog watchdog(300);
  Engine engine(tiny_model("llama", 5, 64));
  std::vector<Request> rows = cache_job(engine.model.spec, 4, 12);
  rows[0].max_new_tokens = 1;  // its prompt alone is stored, for nothing
  rows[0].plans = plans_of(engine.model.spec, {}, rows[0].prompt.size(), 1);
  // The write of its last layer, which nothing waits for, comes to its end after the row.
  std::promise<void> row_is_done;
  const auto late_error = [&](DiskRequest& r) {
    row_is_done.get_future().wait();
    stop(r, EIO, 0);
  };
  std::atomic<int> damaged = 0;
  OffloadedCaches homes(
      *engine.device, {.shares = {0, 0, 100}, .compute = CacheCompute::device}, nullptr, nullptr,
      [&](const CacheOffload& o, uint64_t bytes) -> std::unique_ptr<DiskFile> {
        return std::make_unique<BadFile>(OffloadedCaches::open_spill_file(o, bytes),
                                         BadFile::Trouble{true, 1, 1, late_error}, damaged);
      });
  Generator generator(*engine.device, engine.model.spec, engine.feed, {1, 1, 64, 64}, DType::f32,
                      &homes);
  size_t done = 0;
  Listener listener;
  listener.on_done = [&](size_t row, Completion&& c) {
    CHECK(c.error == "");
    if (row == 0) row_is_done.set_value();
    done++;
  };
  generator.run(rows, listener);
  CHECK(damaged == 1);
  CHECK(done == rows.size());
}

TEST_CASE("a slow disk is waited for", "[devices]") {
  const Watchdog watchdog(300);
  Engine engine(tiny_model("neox", 5), 2);
  const std::vector<Request> rows = cache_job(engine.model.spec, 8, 10);
  const auto expected = run_all(engine.generator({8, 1}), rows);
  for (const bool write : {false, true}) {
    const Outcome o = run_with(engine, rows, {.slots = 3},
                               {write, 0, 40, [](DiskRequest&) {
                                  std::this_thread::sleep_for(std::chrono::milliseconds(3));
                                }});
    CHECK(o.damaged > 5);
    for (size_t row = 0; row < rows.size(); row++) CHECK(same_result(o.rows[row], expected[row]));
  }
}

TEST_CASE(
    "a failure on any lane of caches ends the run with it, finished rows stay, and the next run is "
    "well",
    "[devices]") {
  const Watchdog watchdog(300);
  const TinyModel model = tiny_model("llama", 5);
  const std::vector<Request> rows = cache_job(model.spec, test_backend().empty() ? 24 : 10, 11);
  Engine engine(model);
  const auto expected = run_all(engine.generator({24, 1}), rows);
  for (const std::string lane : {"load_cache", "store_cache", "disk_cache"})
    for (const int at : {0, 1, 60}) {
      LaneDevice device;
      const ModelWeights weights = on_device(model, device);
      ResidentWeights feed(device.ops(), weights);
      OffloadedCaches homes(device, {.shares = kShares, .compute = CacheCompute::device});
      Generator generator(device, model.spec, feed, kShape, DType::f32, &homes);
      std::vector<Completion> done(rows.size());
      size_t finished = 0;
      Listener listener;
      listener.on_done = [&](size_t row, Completion&& c) {
        finished++;
        CHECK(same_result(c, expected[row]));
      };
      CAPTURE(lane, at);
      device.breaks_at[lane] = at;
      // A card says first in which part of the run.
      CHECK_THAT(refusal(Fault::io, [&] { generator.run(rows, listener); }),
                 Catch::EndsWith("lane " + lane + " is broken"));
      CHECK(finished < rows.size());
      device.breaks_at.clear();
      finished = 0;
      generator.run(rows, listener);
      CHECK(finished == rows.size());
    }
}

TEST_CASE("caches that cannot be are refused before anything is taken", "[devices]") {
  LaneDevice device;
  const auto refused = [&](const CacheOffload& options) {
    return refusal(Fault::bad_config, [&] { OffloadedCaches(device, options); });
  };
  CHECK_THAT(refused({.slots = 1}), Contains("prefetch.cache_slots: 1, must be 2 to"));
  CHECK_THAT(refused({.disk_requests = 0}), Contains("prefetch.disk_requests: 0, must be 1 to"));
  CHECK_THAT(refused({.link = -1}), Contains("memory.link"));
  CHECK_THAT(refused({.shares = {50, 0, 0}}),
             Contains("placement.cache: device 50 + host 0 + disk 0 is 50 percent, must be 100"));
  Engine engine(tiny_model("llama", 5));
  OffloadedCaches homes(device, {.shares = {0, 0, 100}, .folder = "/none/such"});
  Generator generator(device, engine.model.spec, engine.feed, kShape, DType::f32, &homes);
  CHECK(refusal(Fault::io, [&] { generator.run(cache_job(engine.model.spec, 3, 1), {}); }) ==
        "memory.folder: /none/such: no file can be made there: No such file or directory");
}
