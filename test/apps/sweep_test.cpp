// bench over many cases: made-up weights, placements side by side, cases that memory is too small
// for.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;
using Catch::Contains;

namespace {

// Short runs of a tiny model, or of its shape.
class Sweep {
 public:
  explicit Sweep(bool synthetic) {
    const std::string shape = tiny_.model.file("config.json");
    words_ = Words{"bench", synthetic ? "--synthetic" : "--model",
                   synthetic ? shape : tiny_.model.path()};
    words_ = words_ +
             Words{"--prompt-len", "6", "--output-len",    "4",           "--repeats",     "1",
                   "--warmup",     "0", "--json",          json(),        "--csv",         csv(),
                   "--budget",     "5", "--memory-folder", folder.path(), "--no-agreement"};
  }
  Outcome run(const Words& more) const { return hydrant_run(words_ + more); }
  Json document(const Words& more) const {
    const Outcome o = run(more);
    CAPTURE(o.err);
    REQUIRE(o.code == 0);
    return Json::parse(read_text(json()));
  }
  std::string json() const { return tiny_.work.file("b.json"); }
  std::string csv() const { return tiny_.work.file("b.csv"); }

  const TemporaryFolder folder;

 private:
  const Tiny tiny_;
  Words words_;
};

int64_t lines_of(const std::string& path) {
  const std::string text = read_text(path);
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

TEST_CASE("bench of synthetic weights says so in every row, and really reads them from disk") {
  const Sweep sweep(/*synthetic=*/true);
  const Words placements{"--placement", "100,0,100,0,100,0", "--placement", "0,50,100,0,100,0"};
  const Json document = sweep.document(placements + Words{"--synthetic-format", "bf16"});
  REQUIRE(document["rows"].size() == 4);
  for (const Json& row : document["rows"]) {
    CAPTURE(row.dump());
    CHECK(row["synthetic"] == true);
    CHECK(row["fits"] == true);
    CHECK(row["agreement"].is_null());
    CHECK(row["weight_format"] == "bf16");
    CHECK(row["total_tokens_per_second"] > 0);
    const bool moves = row["placement"] == "0,50,100,0,100,0";
    CHECK(row["weights_on_disk"] == (moves ? 50 : 0));
    CHECK((row["file_bytes_per_step"].get<double>() > 0) == moves);
    CHECK(row["file_bytes_per_step"] == row["predicted_file_bytes_per_step"]);
  }
  CHECK(document["config"]["bench"]["placement"] ==
        Json::parse("[[100,0,100,0,100,0],[0,50,100,0,100,0]]"));
  CHECK_FALSE(document["config"].contains("placement"));
  CHECK(std::filesystem::is_empty(sweep.folder.path()));
  const Outcome o = sweep.run(placements);
  CHECK_THAT(o.out, Contains("synthetic weights: random numbers") &&
                        Contains("placement 0,50,100,0,100,0\n"));
  CHECK_THAT(o.err, Contains("of synthetic weights to " + sweep.folder.path()));
  CHECK_THAT(sweep.run({}).err, !Contains("synthetic weights to"));  // a resident run needs no file
}

TEST_CASE("synthetic shapes are known by name, have quantised formats and places for any length") {
  const Words small{"--prompt-len", "3", "--output-len", "2", "--repeats", "1", "--warmup", "0"};
  const Words named{"bench", "--synthetic", "opt-125m", "--synthetic-format", "q4_0"};
  CHECK_THAT(hydrant_run(named + small).err, Contains("weights q4_0"));
  check_refused(hydrant_run(Words{"bench", "--synthetic", "opt-7b"} + small), 2,
                "--synthetic: must be one of gpt-neox-20b, ");
  check_refused(hydrant_run({"bench", "--batch", "1"}), 2, "--model: is needed, or --synthetic");
  check_refused(hydrant_run({"bench", "--synthetic", "opt-125m", "--model", "x"}), 2,
                "cannot stand beside");
  check_refused(hydrant_run(named + Words{"--synthetic-format", "q3"}), 2, "given more than once");
  check_refused(hydrant_run({"bench", "--synthetic", "opt-125m", "--synthetic-format", "q3"}), 2,
                "--synthetic-format: must be one of auto, f32");

  const Tiny t;  // of 64 positions
  const Words tiny{"bench",
                   "--synthetic",
                   t.model.file("config.json"),
                   "--prompt-len",
                   "100",
                   "--output-len",
                   "30",
                   "--repeats",
                   "1",
                   "--warmup",
                   "0"};
  const Outcome o = hydrant_run(tiny + Words{"--text", "x", "--agreement"});
  CAPTURE(o.err);
  CHECK(o.code == 0);
  CHECK_THAT(o.err, Contains("--text has no effect on synthetic weights") &&
                        Contains("--agreement has no effect on synthetic weights"));
}

TEST_CASE("synthetic weights that the disk cannot hold are refused before a run, nothing is left") {
  const Sweep sweep(/*synthetic=*/true);
  const Words disk{"--placement", "0,0,100,0,100,0"};
  check_refused(sweep.run(disk + Words{"--memory-disk", "20KiB"}), 3,
                "--memory-disk: 20.0 KiB are not enough: this run needs");
  check_refused(sweep.run(disk + Words{"--memory-device", "10KiB"}), 3, "--memory-device: ");
  CHECK(std::filesystem::is_empty(sweep.folder.path()));
  std::filesystem::remove(sweep.folder.path());
  check_refused(sweep.run(disk), 2, "--memory-folder: " + sweep.folder.path() + " is not a folder");
}

TEST_CASE("a case that memory is too small for is a row that says why, and the others run") {
  const Sweep sweep(/*synthetic=*/false);
  const auto needed = [&](const std::string& batch) {
    const Json row = sweep.document({"--policy", "full", "--batch", batch})["rows"][0];
    return row["weight_bytes"].get<int64_t>() + row["kv_bytes"].get<int64_t>() +
           row["workspace_bytes"].get<int64_t>();
  };
  const int64_t small = needed("2"), large = needed("40");
  REQUIRE(small < large);
  const Words asked{"--policy", "full", "--batch", "2,40", "--placement", "100,0,100,0,100,0"};
  const Json rows =
      sweep.document(asked + Words{"--memory-device", std::to_string((small + large) / 2)})["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(lines_of(sweep.csv()) == 3);
  CHECK(rows[0]["fits"] == true);
  CHECK(rows[0]["misfit"].is_null());
  CHECK(rows[0]["total_tokens_per_second"] > 0);
  CHECK(rows[1]["fits"] == false);
  CHECK_THAT(rows[1]["misfit"].get<std::string>(),
             Contains("--memory-device: ") && Contains("are not enough: this run needs"));
  CHECK(rows[1]["kv_bytes"] > rows[0]["kv_bytes"]);
  for (const char* key : {"total_tokens_per_second", "peak_bytes", "host_bytes_per_step"})
    CHECK(rows[1][key].is_null());

  // Nothing fits: the rows are written all the same, and the exit code says it.
  const Outcome none = sweep.run(asked + Words{"--memory-device", std::to_string(small / 2)});
  check_refused(none, 3, "--memory-device: ");
  CHECK_THAT(none.out, Contains("does not fit: "));
  const Json written = Json::parse(read_text(sweep.json()));
  REQUIRE(written["rows"].size() == 2);
  for (const Json& row : written["rows"]) CHECK(row["fits"] == false);
}

TEST_CASE("auto finds each case its own placement") {
  const Sweep sweep(/*synthetic=*/false);
  const Json whole = sweep.document({"--policy", "full", "--batch", "60"})["rows"][0];
  int64_t bytes = -1;  // one less than all of it takes
  for (const char* part : {"weight_bytes", "kv_bytes", "workspace_bytes"})
    bytes += whole[part].get<int64_t>();
  const Json rows = sweep.document(
      {"--policy", "full", "--batch", "1,60", "--memory-device", std::to_string(bytes)})["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["weights_on_device"] == 100);
  CHECK(rows[1]["fits"] == true);
  CHECK(rows[1]["weights_on_device"] < 100);
  for (const Json& row : rows) CHECK(row["placement"] == "auto");
}

TEST_CASE("lists of placements are read, and refused where they are none") {
  const Tiny t;
  const auto with = [&](const std::string& text, const Words& more = {}) {
    return hydrant_run(Words{"bench", "--model", t.model.path(), "--prompt-len", "4",
                             "--output-len", "2", "--repeats", "1", "--warmup", "0", "--config",
                             t.work.write("run.json", text)} +
                       more);
  };
  CHECK_THAT(with(R"({"bench": {"placement": ["auto", [50, 50, 100, 0, 100, 0]]}})").out,
             Contains("placement auto\n") && Contains("placement 50,50,100,0,100,0\n"));
  // One flag is instead of the file's list, as with every key.
  CHECK_THAT(with(R"({"bench": {"placement": ["auto", [50, 50, 100, 0, 100, 0]]}})",
                  {"--placement", "auto"})
                 .out,
             !Contains("placement "));
  check_refused(with(R"({"bench": {"placement": []}})"), 2,
                "run.json: bench.placement: must be a non-empty list of placements");
  check_refused(with(R"({"bench": {"placement": ["fast"]}})"), 2, "not \"fast\"");
  check_refused(with("{}", {"--placement", "auto", "--placement", "80,40,100,0,100,0"}), 2,
                "80 + 40 is 120");
  check_refused(with("{}", {"--placement", "auto", "--placement", "0,0,100,0,50,40"}), 2,
                "--placement: must be 100 together on device and host");
  check_refused(with("{}", {"--placement", "auto", "--placement-weights", "50"}), 2,
                "cannot stand beside");
}
