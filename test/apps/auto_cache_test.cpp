// Where the device has no room for the cache beside the least that weights take, auto moves rows.
#include <catch2/catch.hpp>
#include <cmath>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/memory_plan.hpp"
#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"
#include "test/offload/lane_device.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

constexpr int kRows = 8;
const Words kShape{"--batch", std::to_string(kRows), "--length", "60"};

Json inspected(const Tiny& t, const Words& more) {
  const Outcome o = hydrant_run(Words{"inspect", t.model.path(), "--json"} + kShape + more);
  CAPTURE(o.err);
  const Json memory = Json::parse(o.out)["memory"];
  REQUIRE(o.code == (memory["fits"] == true ? 0 : 3));
  return memory;
}

uint64_t on_device(const Tiny& t, const Words& placed) {
  return inspected(t, placed)["device"]["bytes"].get<uint64_t>();
}

std::string lines() {
  std::string all;
  for (int i = 0; i < kRows; i++)
    all += "{\"prompt\": \"" + std::string(size_t(20 + 4 * i), char('a' + i)) + "\"}\n";
  return all;
}

Json answers(const Outcome& o) {
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  Json all = Json::object();
  for (const auto& [id, row] : by_id(o.rows()))
    for (const char* key : {"token_ids", "logprobs", "kept"}) all[id][key] = row[key];
  return all;
}

// "300.1 KiB" behind some words.
uint64_t kib_after(const std::string& text, const std::string& words) {
  REQUIRE_THAT(text, Catch::Contains(words));
  const size_t at = text.find(words) + words.size();
  REQUIRE(text.find(" KiB", at) <= at + 6);
  return uint64_t(std::ceil(1024 * std::stod(text.substr(at))));
}

std::string share(double percent) { return std::to_string(percent); }

}  // namespace

TEST_CASE("auto leaves as few rows of the cache on disk as make room, after all weights") {
  const Tiny t;
  const Words in_files{"--placement-weights", "0,0"};
  const uint64_t most = on_device(t, in_files),
                 least = on_device(t, in_files + Words{"--placement-cache", "0,0"});
  REQUIRE(least < most);
  double before = 100;
  for (const uint64_t cap : {most, most - 1, (3 * most + least) / 4, (most + least) / 2,
                             (most + 3 * least) / 4, least, least - 1}) {
    const Words capped{"--memory-device", std::to_string(cap)};
    const Json memory = inspected(t, capped), cache = memory["cache_placement"];
    CAPTURE(cap, most, least, memory.dump());
    const auto there = cache["device"].get<double>();
    CHECK(memory["fits"] == (cap >= least));
    CHECK((there == 100) == (cap >= most));
    CHECK(there <= before);
    CHECK(cache["host"] == 0);
    CHECK(cache["disk"] == 100 - there);
    before = there;
    if (cap < least) continue;
    CHECK(memory["device"]["bytes"].get<uint64_t>() <= cap);
    const double rows = std::round(there * kRows / 100);
    if (rows == kRows) continue;
    // One row more has no room.
    const Words more{"--placement-cache", share(100 * (rows + 1) / kRows) + ",0"};
    CHECK(inspected(t, capped + in_files + more)["fits"] == false);
  }
}

TEST_CASE("a run whose cache has no room beside any weights runs, with the same bits") {
  for (const char* format : {"F32", "BF16"}) {
    const Tiny t(format);
    for (const Words& policy :
         {Words{}, Words{"--policy", "h2o", "--heavy", "12", "--recent", "20"}}) {
      const Words asked = policy + Words{"--report-kept"};
      const auto device = [&](const Words& placed) {  // as the plan of the run has it
        const Outcome o = t.generate(lines(), asked + placed + Words{"--memory-device", "1"});
        REQUIRE(o.code == 3);
        return kib_after(o.err, "this run needs ");
      };
      const uint64_t most = device({"--placement-weights", "0,0"}),
                     least = device({"--placement-weights", "0,0", "--placement-cache", "0,0"});
      const Json expected = answers(t.generate(lines(), asked));
      for (const uint64_t cap : {(3 * most + least) / 4, (most + 2 * least) / 3, least}) {
        CAPTURE(format, policy, cap, most, least);
        const Outcome o =
            t.generate(lines(), asked + Words{"--memory-device", std::to_string(cap)});
        CHECK(answers(o) == expected);
        CHECK_THAT(o.err, Catch::Contains("placement auto: ") &&
                              Catch::Contains("; of the cache's rows ") &&
                              Catch::Contains("of the cache read from disk"));
        // The configuration says it, and gives it again.
        Json config = o.rows().at(0)["config"];
        CHECK(config["placement"]["cache"]["disk"] > 0);
        const Outcome again =
            hydrant_run({"generate", "--config", t.work.write("again.json", config.dump())});
        CHECK(answers(again) == expected);
      }
      // Less is refused, with the least that would do: without overlap, if that takes less.
      const Outcome o =
          t.generate(lines(), asked + Words{"--memory-device", std::to_string(least - 1024)});
      check_refused(o, 3, "--memory-device: ");
      CHECK_THAT(o.err, !Catch::Contains("placement.cache"));
      if (const std::string words = "without overlap "; o.err.find(words) != o.err.npos) {
        const uint64_t bytes = kib_after(o.err, words);
        const auto run = [&](uint64_t cap) {
          return t.generate(lines(),
                            asked + Words{"--no-overlap", "--memory-device", std::to_string(cap)});
        };
        CHECK(answers(run(bytes)) == expected);
        check_refused(run(bytes - 1024), 3, "; less will not do");
      } else {
        CHECK_THAT(o.err, Catch::Contains("; less will not do"));
      }
    }
  }
}

TEST_CASE("auto moves no row of the cache to a disk that has no room for it") {
  const Tiny t;
  const uint64_t most = on_device(t, {"--placement-weights", "0,0"});
  const Words capped{"--memory-device", std::to_string(most - 1)};
  for (const Words& no_disk :
       {Words{"--memory-disk", "4KiB"}, Words{"--memory-folder", "/nowhere"}}) {
    const Json memory = inspected(t, capped + no_disk);
    CHECK(memory["fits"] == false);
    CHECK(memory["cache_placement"]["device"] == 100);
    CHECK_THAT(memory["misfit"].get<std::string>(), Catch::StartsWith("--memory-device: "));
  }
}

TEST_CASE("bench says in a row where auto has left the cache") {
  const Tiny t;
  const std::string json = t.work.file("bench.json");
  const Words bench{
      "bench", "--model",  t.model.path(), "--prompt-len", "40", "--batch", "8", "--output-len",
      "5",     "--policy", "full",         "--repeats",    "1",  "--json",  json};
  const auto rows_with = [&](const Words& more) {
    const Outcome o = hydrant_run(bench + more);
    CAPTURE(o.err);
    REQUIRE(o.code == 0);
    return Json::parse(read_text(json))["rows"];
  };
  // A little less than the full cache takes beside all weights in the file.
  check_refused(hydrant_run(bench + Words{"--placement-weights", "0,0", "--memory-device", "1"}), 3,
                "--memory-device: ");
  const Json full = Json::parse(read_text(json))["rows"][0];
  const uint64_t cap = kib_after(full["misfit"].get<std::string>(), "this run needs ") -
                       full["kv_bytes"].get<uint64_t>() / 4;
  const Json rows =
      rows_with({"--memory-device", std::to_string(cap), "--memory-folder", t.work.path()});
  size_t moved = 0;
  for (const Json& row : rows) {
    CAPTURE(row.dump());
    CHECK(row["placement"] == "auto");
    CHECK(row["fits"] == true);
    CHECK(row["agreement"].is_number());
    if (row["cache_on_disk"].get<double>() == 0) continue;
    moved++;
    CHECK(row["cache_on_device"].get<double>() + row["cache_on_disk"].get<double>() == 100);
    CHECK(row["cache_read_bytes_per_step"].get<double>() > 0);
    CHECK(row["cache_read_bytes_per_step"] == row["predicted_cache_read_bytes_per_step"]);
  }
  CHECK(moved > 0);
}

TEST_CASE("on a device with memory of its own auto moves rows to the host, then to disk") {
  const TemporaryFolder folder;
  write_large_checkpoint(folder, 8);  // of many layers: what passes through is less than what stays
  const Model model = open_described_model(folder.path());
  RunConfig config;
  config.threads = 1;
  config.cache_compute = "host";  // else what comes back would pass through the device's memory
  LaneDevice apart;
  apart.computes_in_host_memory = false;
  const std::vector<Request> rows(kRows, sized_request(model.spec, policy::Choice(), 50, 10));
  const BatchShape shape{kRows, 1, 16, 100};
  const auto plan = [&](const RunConfig& c) {
    return plan_run(c, model, apart, run_need(c, model, apart, shape, rows));
  };
  RunConfig in_files = config;
  in_files.placement = {.automatic = false, .weights = {0, 0, 100}};
  config.memory.device = plan(in_files).device.bytes() - 1;
  const RunPlan on_host = plan(config);
  CHECK(on_host.caches.shares.host > 0);
  CHECK(on_host.caches.shares.disk == 0);
  CHECK(on_host.device.bytes() <= *config.memory.device);
  CHECK(on_host.rows.cache.host > 0);
  double before = 0;
  for (size_t host = on_host.host.bytes(); host > 0; host -= host / 20 + 1) {
    config.memory.host = host;
    const RunPlan less = plan(config);
    if (less.host.bytes() > host) break;
    CAPTURE(host, less.caches.shares.host, less.caches.shares.disk);
    CHECK(less.device.bytes() <= *config.memory.device);
    CHECK(less.caches.shares.device == on_host.caches.shares.device);
    CHECK(less.caches.shares.disk >= before);
    before = less.caches.shares.disk;
  }
  CHECK(before > 0);
}
