// Offloading as a user meets it: the same answers from wherever the weights are, caps that are
// kept, and plans that cannot be refused in words.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "runtime/apps/progress.hpp"
#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

const std::string kLines =
    "{\"prompt\": \"one\"}\n{\"prompt\": \"another prompt\"}\n{\"prompt\": \"x\"}\n"
    "{\"prompt\": \"the fourth is the longest of all\"}\n{\"prompt\": \"5\"}\n";

// What of the rows may not depend on where the weights are.
Json answers(const Outcome& o) {
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  Json all = Json::object();
  for (const auto& [id, row] : by_id(o.rows()))
    for (const char* key : {"token_ids", "logprobs", "text", "kept"}) all[id][key] = row[key];
  return all;
}

Json inspected(const Tiny& t, const Words& more) {
  const Outcome o = hydrant_run(Words{"inspect", t.model.path(), "--json"} + more);
  CAPTURE(o.err);
  const Json memory = Json::parse(o.out)["memory"];
  REQUIRE(o.code == (memory["fits"] == true ? 0 : 3));
  return memory;
}

}  // namespace

TEST_CASE("answers are the same from any placement, overlapped or not, in any groups") {
  Random random(5);
  const auto pick = [&](const Words& options) {
    return options[size_t(random.below(int64_t(options.size())))];
  };
  for (const char* format : {"F32", "BF16", "F16"}) {
    const Tiny t(format);
    for (const Words& policy :
         {Words{}, Words{"--policy", "h2o", "--heavy", "3", "--recent", "4"},
          Words{"--policy", "local", "--recent", "5", "--positions", "cache"}}) {
      const Words asked = policy + Words{"--report-kept", "--seed", "3", "--temperature", "0.7"};
      const Json expected = answers(t.generate(kLines, asked));
      for (int trial = 0; trial < 6; trial++) {
        const Words placed{"--placement-weights",
                           pick({"0,0,100", "0,100,0", "37,21", "60,40", "0,50,50"}),
                           pick({"--overlap", "--no-overlap"}),
                           "--groups",
                           pick({"1", "2", "3"}),
                           "--rows-per-group",
                           pick({"1", "2", "32"}),
                           "--weight-slots",
                           pick({"2", "3", "5"}),
                           "--disk-lanes",
                           pick({"1", "3"}),
                           "--threads",
                           pick({"1", "2"})};
        CAPTURE(format, policy, placed);
        CHECK(answers(t.generate(kLines, asked + placed)) == expected);
      }
    }
  }
}

TEST_CASE("score and bench take their weights from wherever they are") {
  const Tiny t;
  const std::string pairs = t.work.write(
      "pairs", R"({"context_token_ids": [5, 6, 7], "continuation_token_ids": [5, 6, 7, 8]})");
  const Words score{"score", "--model", t.model.path(), "--input", pairs};
  const auto logprobs = [&](const Words& more) {
    return hydrant_run(score + more).rows().at(0)["token_logprobs"];
  };
  CHECK(logprobs({"--placement", "0,40,100,0,100,0"}) == logprobs({}));

  const std::string json = t.work.file("bench.json");
  const Outcome o = hydrant_run({"bench",
                                 "--model",
                                 t.model.path(),
                                 "--placement-weights",
                                 "20,30",
                                 "--prompt-len",
                                 "4",
                                 "--output-len",
                                 "5",
                                 "--batch",
                                 "3",
                                 "--groups",
                                 "2",
                                 "--repeats",
                                 "2",
                                 "--memory-link",
                                 "2GB/s",
                                 "--placement-cache",
                                 "30,30",
                                 "--cache-compute",
                                 "device",
                                 "--json",
                                 json});
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  const Json document = Json::parse(read_text(json));
  CHECK(document["config"]["placement"]["weights"] ==
        Json{{"device", 20}, {"host", 30}, {"disk", 50}});
  for (const Json& row : document["rows"]) {
    for (const char* kind :
         {"host", "disk", "file", "cache_to_device", "cache_to_host", "cache_read"}) {
      const std::string name = std::string(kind) + "_bytes_per_step";
      CAPTURE(name);
      CHECK(row[name].get<double>() > 0);
      CHECK(row[name] == row["predicted_" + name]);
    }
    CHECK(row["link_bytes_per_second"] == 2'000'000'000);
    CHECK(row["weights_on_host"] == 30);
    CHECK(row["cache_on_disk"] == 40);
    CHECK(row["cache_written_bytes"] > 0);
    const Json& written = row["predicted_cache_written_bytes"];
    CHECK(written == row["cache_written_bytes"]);  // nobody leaves in so short a run
  }
}

TEST_CASE(
    "the lanes that were taken, chosen or given, are in the results, and give the run again") {
  const Tiny t;
  const Words on_disk{"--placement-weights", "0,0"};
  const auto least_of = [&](const char* lanes) {
    const Json host = inspected(
        t, on_disk + Words{"--memory-host", "1", "--length", "8", "--disk-lanes", lanes})["host"];
    return std::to_string(host["bytes"].get<uint64_t>());
  };
  const auto lanes_said = [](const Outcome& o) {
    CAPTURE(o.err);
    REQUIRE(o.code == 0);
    const std::string before = "buffers for reading weights (disk_lanes ";
    REQUIRE_THAT(o.err, Catch::Contains(before));
    return std::stoi(o.err.substr(o.err.find(before) + before.size()));
  };
  const auto in_bench = [&](const Words& more) {
    const std::string json = t.work.file("bench.json");
    const Outcome o = hydrant_run(Words{"bench", "--model", t.model.path(), "--prompt-len", "4",
                                        "--output-len", "3", "--repeats", "1", "--json", json} +
                                  more);
    CAPTURE(o.err);
    REQUIRE(o.code == 0);
    const Json document = Json::parse(read_text(json));
    const Json lanes = document["rows"][0]["disk_lanes"];
    CHECK(document["config"]["prefetch"].value("disk_lanes", Json()) == lanes);
    return lanes;
  };
  std::set<int> seen;
  for (const Words& asked : {Words{}, Words{"--memory-host", least_of("1")},
                             Words{"--memory-host", least_of("4")}, Words{"--disk-lanes", "3"},
                             Words{"--no-overlap"}, Words{"--no-overlap", "--disk-lanes", "3"}}) {
    CAPTURE(asked);
    const Outcome o = t.generate(kLines, on_disk + asked);
    const int lanes = lanes_said(o);
    const Json config = o.rows().at(0)["config"];
    CHECK(config["prefetch"]["disk_lanes"] == lanes);
    CHECK(in_bench(on_disk + asked) == lanes);
    const Outcome again =
        hydrant_run({"generate", "--config", t.work.write("again.json", config.dump())});
    CHECK(lanes_said(again) == lanes);
    CHECK(again.rows().at(0)["config"] == config);
    seen.insert(lanes);
  }
  CHECK(seen == std::set<int>{1, 3, 4, 8});
  for (const Words& unread : {Words{}, Words{"--placement-weights", "30,70"}}) {
    CHECK(in_bench(unread).is_null());
    CHECK(!t.generate(kLines, unread).rows().at(0)["config"]["prefetch"].contains("disk_lanes"));
  }
}

TEST_CASE("what a run moves and takes is printed, predicted beside measured") {
  const Tiny t;
  const Outcome o = t.generate(kLines, {"--placement-weights", "0,50,50", "--memory-device", "4MiB",
                                        "--memory-link", "1GB/s"});
  CHECK_THAT(o.err, Catch::Contains("of weights host to device (as predicted)") &&
                        Catch::Contains("of weights disk to device (as predicted)") &&
                        Catch::Contains("link held to 1.0 GB/s") &&
                        Catch::Contains("(may be 4.0 MiB)") && Catch::Contains("(predicted: ") &&
                        Catch::Contains(", at most "));
  const Json config = o.rows().at(0)["config"];
  CHECK(config["placement"]["weights"] == Json{{"device", 0}, {"host", 50}, {"disk", 50}});
  CHECK(config["memory"]["device"] == 4 << 20);
}

TEST_CASE("a plan that exceeds a cap by one byte is refused before anything is read or written") {
  const Tiny t;
  const Words shape{"--batch", "2", "--length", "20"};
  const std::string out = t.work.file("out.jsonl");
  REQUIRE(t.generate(kLines, {"--output", out}).code == 0);
  const std::string before = read_text(out);
  for (const char* shares : {"100", "30,30", "0,0,100"}) {
    for (const char* tier : {"device", "host"}) {
      CAPTURE(shares, tier);
      const std::string flag = std::string("--memory-") + tier;
      const auto fits = [&](uint64_t cap) {
        return inspected(t,
                         shape + Words{"--placement-weights", shares, flag, std::to_string(cap)});
      };
      // Buffers that may be smaller are as small as they get.
      const auto bytes = fits(1)[tier]["bytes"].get<uint64_t>();
      if (bytes == 0) continue;
      CHECK(fits(bytes)["fits"] == true);
      const Json over = fits(bytes - 1);
      CHECK(over["fits"] == false);
      CHECK_THAT(over["misfit"].get<std::string>(), Catch::StartsWith(flag + ": "));
    }
  }
  const Outcome o = t.generate(kLines, {"--placement-weights", "50", "--memory-device", "20KiB",
                                        "--output", out, "--overwrite"});
  check_refused(o, 3, "--memory-device: 20.0 KiB are not enough: this run needs ");
  CHECK_THAT(o.err, Catch::Contains("KV cache ") && Catch::Contains("weights ") &&
                        Catch::Contains("with all weights left in the files "));
  CHECK(read_text(out) == before);
  check_refused(t.generate(kLines, {"--memory-host", "1", "--placement-weights", "0,100"}), 3,
                "--memory-host: 1 bytes are not enough: this run needs ");
}

TEST_CASE("what a run is said to need, and the least that would do, are enough as caps") {
  const Tiny t;
  const auto cap_after = [](const std::string& err, const std::string& words, const char* unit) {
    const size_t at = err.find(words);
    REQUIRE(at != err.npos);
    const std::string text = err.substr(at + words.size());
    const size_t end = text.find(unit);
    REQUIRE(end != text.npos);
    return text.substr(0, end - 1) + unit;  // "31.4 KiB" without its space
  };
  for (const char* rows : {"1", "2", "3", "5", "7"}) {
    CAPTURE(rows);
    const Words batch{"--rows-per-group", rows, "--placement-weights", "40"};
    const Outcome o = t.generate(kLines, batch + Words{"--memory-device", "1KiB"});
    check_refused(o, 3, "--memory-device: 1.0 KiB are not enough");
    const std::string needed = cap_after(o.err, "needs ", "KiB"),
                      least = cap_after(o.err, "weight_slots 2) ", "KiB");
    CAPTURE(o.err, needed, least);
    CHECK(t.generate(kLines, batch + Words{"--memory-device", needed}).code == 0);
    CHECK(t.generate(kLines, {"--rows-per-group", rows, "--placement-weights", "0,0,100",
                              "--disk-lanes", "1", "--memory-device", least})
              .code == 0);
  }
}

TEST_CASE("the cache on disk has its cap, its folder, and leaves nothing behind") {
  const Tiny t;
  const Words on_disk{"--placement-cache", "0,0,100"};
  const TemporaryFolder folder;
  const Outcome o = t.generate(kLines, on_disk + Words{"--memory-folder", folder.path()});
  CAPTURE(o.err);
  CHECK(o.code == 0);
  CHECK_THAT(o.err, Catch::Contains("; disk ") && Catch::Contains("of the cache written to disk"));
  CHECK(std::filesystem::is_empty(folder.path()));
  check_refused(t.generate(kLines, on_disk + Words{"--memory-disk", "4KiB"}), 3,
                "--memory-disk: 4.0 KiB are not enough: this run needs ");
  check_refused(t.generate(kLines, on_disk + Words{"--memory-folder", "/nowhere"}), 2,
                "--memory-folder: /nowhere is not a folder");
  check_refused(t.generate(kLines, {"--placement-activations", "50,30"}), 2,
                "--placement-activations: must be 100 together on device and host, not on disk");
  check_refused(t.generate(kLines, {"--placement", "20,80,0,100,0,0"}), 2, "--placement: must be");
}

TEST_CASE("a folder that takes no file is refused before a model is opened, by every command") {
  const Tiny t;
  const std::string pairs = t.work.write("pairs", R"({"context": "a", "continuation": "b"})");
  // Not even root makes a file there, though the system would say that it may.
  const Words folder{"--memory-folder", "/proc"}, model{"--model", "/nowhere"};
  const std::string says = "--memory-folder: no file can be made in /proc: ";
  for (const Words& command :
       {Words{"generate", "--prompt", "a"} + model, Words{"score", "--input", pairs} + model,
        Words{"inspect", "/nowhere"}, Words{"bench"} + model})
    check_refused(hydrant_run(command + folder + Words{"--placement-cache", "50,0"}), 2, says);
  const Words made{"bench", "--synthetic", t.model.file("config.json")};
  check_refused(hydrant_run(made + folder + Words{"--placement-weights", "50,0"}), 2, says);
  const Outcome o =
      hydrant_run({"validate", t.work.write("run.json", R"({"memory": {"folder": "/proc"},
                                                "placement": {"cache": {"disk": 100}}})")});
  CHECK(o.code == 0);
  CHECK_THAT(o.err, Catch::Contains("on this machine a run would be refused: ") &&
                        Catch::Contains("memory.folder: no file can be made in /proc: "));
}

TEST_CASE("auto takes as much of the device as it may") {
  const Tiny t;
  const Words shape{"--batch", "2", "--length", "20"};
  const Json whole = inspected(t, shape);
  CHECK(whole["placement"] == Json{{"device", 100}, {"host", 0}, {"disk", 0}});
  const auto resident = whole["device"]["bytes"].get<uint64_t>(),
             least = inspected(t, shape + Words{"--placement-weights", "0"})["device"]["bytes"]
                         .get<uint64_t>();
  REQUIRE(least < resident);
  double before = 100;
  for (const uint64_t cap : {resident, resident - 1, (resident + least) / 2, least}) {
    const Json memory = inspected(t, shape + Words{"--memory-device", std::to_string(cap)});
    const auto share = memory["placement"]["device"].get<double>();
    CAPTURE(cap, share);
    CHECK(memory["device"]["bytes"] <= cap);
    CHECK(memory["fits"] == true);
    CHECK(memory["cache_placement"]["device"] == 100);  // a byte less moves some of it
    CHECK(memory["placement"]["host"] == 0);
    CHECK(share <= before);
    CHECK((share == 100) == (cap >= resident));
    before = share;
  }
  const Outcome o = t.generate(kLines, {"--memory-device", "310KiB"});
  CAPTURE(o.err);
  CHECK(o.code == 0);
  CHECK_THAT(o.err, Catch::Contains("placement auto: "));
  CHECK(answers(t.generate(kLines, {"--memory-device", "310KiB", "--report-kept"})) ==
        answers(t.generate(kLines, {"--report-kept"})));
}

TEST_CASE("a placement that only costs time is warned of once") {
  const Tiny t;
  const auto warnings = [](const Outcome& o) {
    size_t count = 0;
    for (size_t at = 0; (at = o.err.find("hydrant: warning: ", at)) != std::string::npos; at++)
      count++;
    return count;
  };
  const Outcome fits = t.generate(kLines, {"--placement-weights", "50,50"});
  CHECK_THAT(fits.err, Catch::Contains("--placement-weights: all would fit on the device ("));
  CHECK(warnings(fits) == 1);
  CHECK(warnings(t.generate(kLines)) == 0);
  const Outcome capped =
      t.generate(kLines, {"--placement-weights", "10,90", "--memory-device", "310KiB"});
  CAPTURE(capped.err);
  CHECK(capped.code == 0);
  CHECK(warnings(capped) == 0);
  CHECK_THAT(capped.err, Catch::Contains("from memory to memory"));
  const Outcome idle = t.generate(kLines, {"--placement", "100,0,100,0,100,0", "--no-overlap"});
  CHECK_THAT(idle.err, Catch::Contains("--overlap: no effect with everything on the device"));
}

TEST_CASE("the time that is left is told once there is something to tell it from") {
  CHECK(time_left_text(0, 3) == "");
  CHECK(time_left_text(0.25, 10) == "about 30 s left");
  CHECK(time_left_text(0.5, 600) == "about 10 min left");
  CHECK(time_left_text(1, 20) == "about 0 s left");
}
