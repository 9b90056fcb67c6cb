// Memory limits are kept: by the process as the system sees it, not only by the plan. Sanitizers
// need memory of their own, so these are not for them.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <regex>

#include "runtime/apps/run_plan.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// What a process maps beside its caps and kProcessRoom: libraries, and 2 MiB of stack for each
// thread, of which it touches little.
constexpr uint64_t kMapped = 128 * kMiB;

// "peak memory 71.2 MiB (predicted: 56.0 MiB, at most 120.0 MiB)"
struct Peak {
  double measured = 0, predicted = 0;
};
Peak peak_of(const Outcome& o) {
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  std::smatch found;
  REQUIRE(std::regex_search(
      o.err, found,
      std::regex("peak memory ([0-9.]+) MiB \\(predicted: [0-9.]+ MiB, at most ([0-9.]+) MiB\\)")));
  return {std::stod(found[1]), std::stod(found[2])};
}

Outcome run(const TemporaryFolder& model, const std::string& device, const std::string& host,
            uint64_t address_space, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"generate",   "--model",          model.path(), "--prompt",
                                 "some words", "--max-new-tokens", "3",          "--memory-device",
                                 device,       "--memory-host",    host,         "--threads",
                                 "2",          "--ignore-eos"};
  words.insert(words.end(), more.begin(), more.end());
  Start start;
  start.arguments = words;
  start.address_space = address_space;
  return Process(start).wait();
}

}  // namespace

TEST_CASE("memory limits: a model four times as large as its caps runs from its file") {
  TemporaryFolder model;
  const uint64_t bytes = write_large_checkpoint(model, 32);
  const uint64_t caps = (32 + 16) * kMiB;
  REQUIRE(bytes >= 4 * caps);
  for (const bool overlap : {true, false}) {
    const Peak peak = peak_of(run(model, "32MiB", "16MiB", caps + kProcessRoom + kMapped,
                                  {overlap ? "--overlap" : "--no-overlap"}));
    CHECK(peak.measured <= peak.predicted);
    CHECK(peak.measured * double(kMiB) <= double(caps + kProcessRoom));
    CHECK(peak.predicted * double(kMiB) <= double(caps + 2 * kProcessRoom));
  }
}

TEST_CASE("memory limits: what the system lacks is asked for in words, before weights are read") {
  TemporaryFolder model;
  write_large_checkpoint(model, 32);
  check_refused(run(model, "1GiB", "1GiB", kMapped + 64 * kMiB, {"--placement-weights", "100"}), 3,
                "this process may map ");
  // auto takes what there is.
  const Outcome o = run(model, "1GiB", "1GiB", kMapped + kProcessRoom + 64 * kMiB);
  CAPTURE(o.err);
  CHECK(o.code == 0);
}

TEST_CASE("memory limits: the least that is named is enough as a cap, and is the least") {
  TemporaryFolder model;
  write_large_checkpoint(model, 6);
  const auto inspect = [&](const Words& words) {
    const Outcome o = hydrant_run(
        Words{"inspect", model.path(), "--json", "--length", "60", "--batch", "100"} + words);
    CAPTURE(o.err);
    return Json::parse(o.out)["memory"];
  };
  // The bytes between some words; 0: the words are not there.
  const auto bytes_at = [](const std::string& text, const std::string& before,
                           const std::string& behind) -> uint64_t {
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(before + "([0-9.]+) (KiB|MiB)" + behind)))
      return 0;
    return uint64_t(std::ceil(std::stod(found[1]) * (found[2] == "MiB" ? 1048576 : 1024)));
  };
  // Returns why less is refused.
  const auto is_least = [&](const Words& words, const std::string& flag, uint64_t bytes) {
    CAPTURE(words, flag, bytes);
    CHECK(inspect(words + Words{flag, std::to_string(bytes)})["fits"] == true);
    const uint64_t less = bytes > kMiB ? bytes - kMiB : 1;
    const Json memory = inspect(words + Words{flag, std::to_string(less)});
    CHECK(memory["fits"] == false);
    return memory["misfit"].is_string() ? memory["misfit"].get<std::string>() : "";
  };
  for (const std::string overlap : {"--overlap", "--no-overlap"})
    for (const Words& elsewhere :
         {Words{}, Words{"--placement-cache", "20,30", "--cache-compute", "device"},
          Words{"--placement-cache", "0,0", "--placement-activations", "0,100"},
          Words{"--placement-cache", "0,0", "--cache-slots", "5", "--cache-compute", "device"}})
      for (const char* weights : {"70", "0,60", "0,0"})
        for (const std::string tier : {"device", "host"}) {
          const std::string flag = "--memory-" + tier;
          const Words asked = Words{"--placement-weights", weights, overlap} + elsewhere;
          const Json memory = inspect(asked + Words{flag, "1"});
          if (memory["fits"] == true) continue;  // nothing is there
          const auto why = memory["misfit"].get<std::string>();
          CAPTURE(asked, flag, why);
          Words in_files = Words{"--placement-weights", "0,0", "--disk-lanes", "1"} + elsewhere;
          for (std::string& word : in_files)
            if (word == "5") word = "2";  // slots
          const uint64_t least = bytes_at(why, "left in the files[^;0-9]*(?:lanes 1[^)]*\\) )?",
                                          " would do"),
                         in_turns = bytes_at(why, "without overlap ", "");
          if (least == 0) {
            CHECK_THAT(why, Catch::Contains("; less will not do"));
            continue;
          }
          if (in_turns > 0 && in_turns != least) {
            CHECK(in_turns < least);
            CHECK_THAT(is_least(in_files + Words{overlap}, flag, least),
                       Catch::Contains("left in the files and without overlap "));
          }
          const Words last = in_turns > 0 ? Words{"--no-overlap"} : Words{overlap};
          CHECK_THAT(is_least(in_files + last, flag, in_turns > 0 ? in_turns : least),
                     Catch::Contains("; less will not do"));
        }
}

TEST_CASE(
    "memory limits: buffers for reading are as large as the cap on host memory lets them be") {
  TemporaryFolder model;
  write_large_checkpoint(model, 32);
  const auto host = [&](const Words& more, bool fits,
                        Words placement = {"--placement-weights", "0,0"}) {
    const Outcome o = hydrant_run(Words{"inspect", model.path(), "--json"} + placement + more);
    CAPTURE(o.err);
    const Json memory = Json::parse(o.out)["memory"];
    CHECK(memory["fits"] == fits);
    return memory["host"]["bytes"].get<uint64_t>();
  };
  const uint64_t most = host({}, true), least = host({"--memory-host", "1"}, false);
  CHECK(most > 32 * kMiB);  // what reads arrive in and what they are packed into
  CHECK(least < 8 * kMiB);
  uint64_t before = most;
  for (uint64_t cap = most - 1; cap > least; cap = cap * 3 / 4) {
    const uint64_t bytes = host({"--memory-host", std::to_string(cap)}, true);
    CAPTURE(cap, bytes);
    CHECK(bytes <= cap);
    CHECK(bytes <= before);
    CHECK(bytes * 4 > cap);  // not all of it is given up for a little
    before = bytes;
  }
  // With so little for the host no share of the device's is too large for auto, which takes less.
  for (int device = 24; device <= 200; device += 8)
    host({"--memory-host", std::to_string(least), "--memory-device", std::to_string(device) + "MiB",
          "--length", "16"},
         true, {});
  // Lanes that are asked for stay.
  host({"--memory-host", std::to_string(least), "--disk-lanes", "8"}, false);
  host({"--memory-host", std::to_string(least), "--disk-lanes", "1"}, true);
}

TEST_CASE("memory limits: without caps, buffers for reading leave room for the process") {
  TemporaryFolder model;
  write_large_checkpoint(model, 32);
  for (const uint64_t room : {24, 32, 40, 56, 80}) {
    Start start;
    start.arguments = {"generate", "--model",          model.path(), "--prompt",
                       "a",        "--max-new-tokens", "2",          "--placement-weights",
                       "0,0",      "--ignore-eos"};
    start.address_space = kMapped + kProcessRoom + room * kMiB;
    const Outcome o = Process(start).wait();
    CAPTURE(room, o.err);
    CHECK(o.code == 0);
  }
}

TEST_CASE("memory limits: what a run is said to need, and room for the process, are all it maps") {
  TemporaryFolder model;
  write_large_checkpoint(model, 8);
  const auto run_with = [&](uint64_t address_space, const Words& placed) {
    Start start;
    start.arguments = Words{"bench",     "--model",  model.path(), "--prompt-len",
                            "60",        "--batch",  "64",         "--output-len",
                            "2",         "--policy", "full",       "--no-agreement",
                            "--warmup",  "0",        "--repeats",  "1",
                            "--threads", "2"} +
                      placed;
    start.address_space = address_space;
    return Process(start).wait();
  };
  const auto mebibytes = [](const std::string& text, const std::string& before) {
    std::smatch found;
    REQUIRE(std::regex_search(text, found, std::regex(before + "([0-9.]+) MiB")));
    return uint64_t(std::stod(found[1]) * double(kMiB));
  };
  for (const Words& placed : {Words{"--placement-weights", "100"},
                              Words{"--placement-weights", "0,0", "--placement-cache", "0,100"},
                              Words{"--placement-weights", "0,50", "--placement-cache", "50,50"},
                              Words{"--placement-weights", "50,0", "--disk-lanes", "8"}}) {
    const uint64_t little = kMapped - 32 * kMiB;
    const Outcome refused = run_with(little, placed);
    CAPTURE(placed, refused.err);
    CHECK(refused.code == 3);
    const uint64_t left = mebibytes(refused.err, "this process may map "),
                   needed = mebibytes(refused.err, "this run needs ");
    const Outcome o = run_with(little - left + needed + kProcessRoom, placed);
    CAPTURE(o.err);
    CHECK(o.code == 0);
  }
}

TEST_CASE("memory limits: a bench that has no room to measure the memory's speed goes without") {
  TemporaryFolder model;
  write_large_checkpoint(model, 1);
  Start start;
  start.arguments = {"bench",
                     "--model",
                     model.path(),
                     "--prompt-len",
                     "4",
                     "--output-len",
                     "4",
                     "--batch",
                     "1",
                     "--policy",
                     "full",
                     "--threads",
                     "1",
                     "--no-agreement",
                     "--memory-device",
                     "24MiB"};
  start.address_space = kMapped + kProcessRoom + 24 * kMiB;
  const Outcome o = Process(start).wait();
  CAPTURE(o.err);
  CHECK(o.code == 0);
  CHECK_THAT(o.err, Catch::Contains("warning: the memory's speed cannot be measured"));
}

TEST_CASE("memory limits: a thread that cannot start is a lack of memory, whoever starts it") {
  TemporaryFolder model;
  write_large_checkpoint(model, 1);
  // 256 stacks of 2 MiB, untouched, are 512 MiB of addresses: the pool of the device cannot start.
  Start start;
  start.arguments = {"generate", "--model", model.path(), "--prompt", "a", "--threads", "256"};
  start.address_space = kMapped + 128 * kMiB;
  const Outcome pool = Process(start).wait();
  check_refused(pool, 3, "a thread could not be started in generate: ");
  CHECK_THAT(pool.err, Catch::Contains("which may map 256.0 MiB (ulimit -v)") &&
                           Catch::Contains("ulimit -u"));
}
