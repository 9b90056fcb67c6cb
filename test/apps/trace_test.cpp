// Traces: what each lane did, and that nobody pays for one that is not asked for.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

struct Span {
  std::string name;
  double begin, end;
  uint64_t bytes;
};

// [lane], in order of beginning.
std::map<std::string, std::vector<Span>> lanes_of(const std::string& path) {
  std::map<std::string, std::vector<Span>> lanes;
  std::map<int, std::string> names;
  const Json document = Json::parse(read_text(path));
  for (const Json& e : document["traceEvents"]) {
    if (e["ph"] == "M" && e["name"] == "thread_name") names[e["tid"]] = e["args"]["name"];
    if (e["ph"] != "X") continue;
    REQUIRE(e["cat"] == names[e["tid"]]);
    const auto begin = e["ts"].get<double>();
    lanes[e["cat"]].push_back({e["name"], begin, begin + e["dur"].get<double>(),
                               e.contains("args") ? e["args"]["bytes"].get<uint64_t>() : 0});
  }
  for (auto& [lane, spans] : lanes)
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return lanes;
}

uint64_t bytes_of(const std::vector<Span>& spans) {
  uint64_t sum = 0;
  for (const Span& s : spans) sum += s.bytes;
  return sum;
}

}  // namespace

TEST_CASE("a trace goes where it can be written, and over nothing but a trace") {
  const Tiny t;
  const std::string text = t.work.write("text", "some words"),
                    weights = t.model.file("model.safetensors");
  const std::string pairs = t.work.write("pairs", R"({"context": "a", "continuation": "b"})");
  const Words commands[] = {{"generate", "--prompt", "a"}, {"score", "--input", pairs}, {"bench"}};
  for (const Words& command : commands) {
    CAPTURE(command);
    const auto refused = [&](const std::string& model, const std::string& trace, int code,
                             const std::string& says) {
      check_refused(hydrant_run(command + Words{"--model", model, "--trace", trace}), code, says);
    };
    // Before the model is looked for.
    refused("/no/model", "/no/such/t.json", 4, "--trace: cannot write /no/such/t.json");
    refused("/no/model", "/tmp", 4, "--trace: /tmp is a folder");
    refused("/no/model", text, 2, "--trace: " + text + " is not replaced: it is not a trace");
    refused(t.model.path(), weights, 2, "it lies in the model's folder");
  }
  const std::string file = t.work.file("t.json");
  for (int again = 0; again < 2; again++)
    CHECK(t.generate(R"({"prompt": "a"})", {"--trace", file}).code == 0);
}

TEST_CASE("a trace has every lane's work, with its bytes, in its steps") {
  const Tiny t;
  const std::string file = t.work.file("trace.json");
  const Outcome o = t.generate("{\"prompt\": \"one\"}\n{\"prompt\": \"two\"}\n",
                               {"--placement-weights", "0,40,60", "--groups", "2",
                                "--rows-per-group", "1", "--trace", file});
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  const auto lanes = lanes_of(file);
  for (const char* lane : {"steps", "compute", "load_weights", "disk 1", "disk 2"}) {
    CAPTURE(lane);
    REQUIRE(lanes.contains(lane));
    const auto& spans = lanes.at(lane);
    for (size_t i = 1; i < spans.size(); i++) CHECK(spans[i - 1].end <= spans[i].begin);
  }
  const auto& steps = lanes.at("steps");
  REQUIRE(steps.size() == 6);  // tokens of a row
  CHECK(steps.front().name == "step 1");
  const auto& compute = lanes.at("compute");
  CHECK(compute.size() == 6 * 2 * 4);  // steps, groups, stages
  CHECK(compute.front().begin >= steps.front().begin);
  CHECK(compute.back().end <= steps.back().end);
  CHECK(bytes_of(compute) == 0);
  const uint64_t from_disk = bytes_of(lanes.at("disk 1")) + bytes_of(lanes.at("disk 2"));
  CHECK(from_disk > 0);
  CHECK(bytes_of(lanes.at("load_weights")) > from_disk);  // and from the host
}

TEST_CASE("a trace has the cache's lanes where it passes through") {
  const Tiny t;
  const std::string file = t.work.file("trace.json");
  const Outcome o = t.generate("{\"prompt\": \"one\"}\n{\"prompt\": \"two\"}\n",
                               {"--placement-cache", "0,50", "--cache-compute", "device", "--trace",
                                file, "--policy", "h2o", "--heavy", "2", "--recent", "2"});
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  const auto lanes = lanes_of(file);
  for (const char* lane : {"load_cache", "store_cache", "disk_cache"}) {
    CAPTURE(lane);
    REQUIRE(lanes.contains(lane));
    CHECK(bytes_of(lanes.at(lane)) > 0);
  }
}

TEST_CASE("a trace that cannot be written is refused before the run") {
  const Tiny t;
  check_refused(t.generate("{\"prompt\": \"one\"}", {"--trace", "/nowhere/trace.json"}), 4,
                "--trace: ");
}
