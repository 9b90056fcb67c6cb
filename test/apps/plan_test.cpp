// Profiles and plans as a user meets them.
#include <catch2/catch.hpp>
#include <set>

#include "runtime/apps/profile_file.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

Curve straight(std::vector<std::pair<double, double>> points) {
  return {std::move(points), Curve::Beyond::straight};
}

// Some machine: weights are read at 20 GB/s and multiplied at 100 GFLOP/s.
MachineRates some_rates() {
  MachineRates r;
  r.device = "cpu";
  r.isa = "abacus";
  r.processor = "beads";
  r.threads = r.cores = 2;
  r.memory = 20e9;
  r.copy = {{{1, 8e9}, {2, 10e9}}, Curve::Beyond::level};
  const Curve request{{{1, 1e-4}, {2, 5e-5}}, Curve::Beyond::level};
  r.disk_read = {request, {{{1, 1e-9}, {2, 7e-10}}, Curve::Beyond::level}};
  r.file_read = {request, {{{1, 2e-9}, {2, 1e-9}}, Curve::Beyond::level}};
  r.disk_write = {request, {{{1, 2e-9}, {2, 1.4e-9}}, Curve::Beyond::level}};
  r.fork_join = 1e-6;
  r.block = straight({{1000, 1e-5}, {100000, 5e-5}});
  r.logits = {1e-6, 1e-10};
  for (const Activations a : {Activations::f32, Activations::bf16})
    for (const DType format : {DType::f32, DType::f16, DType::bf16}) {
      ProductRate& p = r.products.emplace_back();
      p.format = format;
      p.activations = a;
      p.weight = straight({{1, 1e-10}, {4, 1e-10}, {64, 1.3e-9}});
      p.call = straight({{1024, 1e-6}, {262144, 2e-5}});
    }
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    AttentionRate& a = r.attention.emplace_back();
    a.dtype = dtype;
    a.decode = a.scored = straight({{1, 1.5e-10}, {4, 2e-10}});
    a.prompt = a.columns = straight({{64, 1e-9}, {128, 2e-9}});
    r.packing.push_back({dtype, 4e-10});
  }
  return r;
}

struct Planning {
  TemporaryFolder folder;
  std::string profile = folder.write("machine.json", profile_text(some_rates(), {}));
  std::string config = folder.file("plan.json");

  Outcome plan(const std::string& model, const Words& more) const {
    return hydrant_run(Words{"plan", "--model", model, "--profile", profile, "--output", config} +
                       more);
  }
  Json planned(const std::string& model, const Words& more) const {
    const Outcome o = plan(model, more);
    CAPTURE(o.err);
    REQUIRE(o.code == 0);
    return Json::parse(read_text(config));
  }
};

double speed_of(const Outcome& o) {
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  const std::string before = "generated tokens at ";
  std::string text = o.out.substr(o.out.find(before) + before.size());
  text.resize(text.find(' '));
  std::erase(text, ',');
  return std::stod(text);
}

int batch_of(const Json& config) { return config["bench"]["batch"][0]; }

void check_unread(const std::string& path, const std::string& says) {
  CAPTURE(says);
  try {
    read_profile(path);
    FAIL("it was read");
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::bad_config);
    CHECK_THAT(e.what(), Catch::StartsWith(path + ": ") && Catch::Contains(says));
  }
}

const std::string kShapes = HYDRANT_TEST_DIR "/../configs/models/";
const Words kTight{"--memory-device", "220MB", "--memory-host", "120MB"};
const Words kHalves{"--prompt-len", "512", "--output-len", "512"};

}  // namespace

TEST_CASE("a profile is read as it was written") {
  const TemporaryFolder folder;
  const MachineRates r = some_rates();
  const std::string text =
      profile_text(r, {"2026-01-02T03:04:05Z", "cpu", "Linux", {"/tmp", true, "/m.gguf"}});
  const MachineRates read = read_profile(folder.write("p.json", text));
  CHECK(profile_text(read, {"2026-01-02T03:04:05Z", "cpu", "Linux", {"/tmp", true, "/m.gguf"}}) ==
        text);
  CHECK(read.product(DType::bf16, Activations::bf16).weight.at(128) ==
        r.product(DType::bf16, Activations::bf16).weight.at(128));
  CHECK(read.copy.at(4) == r.copy.at(4));
  CHECK_FALSE(read.bus.measured());
  MachineRates card = r;
  const Curve way{{{65536, 5e9}, {1 << 24, 2e10}}, Curve::Beyond::level};
  card.bus = {way, way, way, {{{65536, 3e9}}, Curve::Beyond::level}};
  const BusRates bus = read_profile(folder.write("c.json", profile_text(card, {}))).bus;
  CHECK(bus.up.at(1e6) == way.at(1e6));
  CHECK(bus.down_shared.at(1e6) == 3e9);
  CHECK(read.disk_read.seconds(3, 1e6, 2) == r.disk_read.seconds(3, 1e6, 2));
  CHECK(read.file_read.seconds(3, 1e6, 2) == r.file_read.seconds(3, 1e6, 2));
  CHECK(read.disk_write.seconds(3, 1e6, 1) == r.disk_write.seconds(3, 1e6, 1));
}

TEST_CASE("a file that is no profile is refused, naming what is wrong") {
  const TemporaryFolder folder;
  const Json good = Json::parse(profile_text(some_rates(), {}));
  const auto refused = [&](const Json& document, const std::string& says) {
    check_unread(folder.write("bad.json", document.dump()), says);
  };
  refused(Json{{"seed", 1}}, "not a profile");
  Json bad = good;
  bad["format_version"] = 1;  // it lacks what a disk's request takes beside its bytes
  refused(bad, "format_version is 1, this program reads 2; 'hydrant profile --output ");
  for (const char* key : {"memory", "disk", "products", "attention", "packing", "blocks"}) {
    bad = good;
    bad.erase(key);
    refused(bad, fmt::format("key {} is missing", key));
  }
  bad = good;
  bad["disk"]["read"][0]["seconds_per_byte"] = -1;
  refused(bad, "disk.read[0].seconds_per_byte: must be a number");
  bad = good;
  bad["products"][0]["weights"][1]["rows"] = 1;
  refused(bad, "products[0].weights[1]: its rows must ascend");
  bad = good;
  bad["products"][0]["format"] = "q9_9";
  refused(bad, "unknown format 'q9_9'");
  bad = good;
  bad["copy_to_device"] = Json::array();
  refused(bad, "copy_to_device: must be a list with entries");
}

TEST_CASE("every number of a profile is refused where it cannot be one, by file and key") {
  const TemporaryFolder folder;
  MachineRates rates = some_rates();
  rates.bus.up = rates.bus.down = rates.bus.up_shared = rates.bus.down_shared = rates.copy;
  const Json good = Json::parse(profile_text(rates, {"", "", "", {"/tmp", true, "/m.gguf"}}));
  const auto path_of = [](const std::string& pointer) {  // "/disk/read/0/x" is disk.read[0].x
    std::string path;
    for (size_t at = 1; at < pointer.size();) {
      const size_t end = std::min(pointer.find('/', at), pointer.size());
      const std::string word = pointer.substr(at, end - at);
      if (std::isdigit(static_cast<unsigned char>(word[0])))
        path += "[" + word + "]";
      else
        path += (path.empty() ? "" : ".") + word;
      at = end + 1;
    }
    return path;
  };
  // Differences of what was measured: noise may leave nothing of them.
  const std::set<std::string> may_be_zero{"seconds_per_request", "seconds_per_call",
                                          "seconds_per_element", "seconds_beside_products",
                                          "fork_join_seconds"};
  size_t numbers = 0;
  const Json flat = good.flatten();  // outlives the loop over its parts
  for (const auto& [pointer, value] : flat.items()) {
    if (!value.is_number() || pointer.starts_with("/disk/request_bytes")) continue;
    numbers++;
    const std::string path = path_of(pointer), name = pointer.substr(pointer.rfind('/') + 1);
    const Json::json_pointer at(pointer);
    const auto with = [&](const Json& other) {
      Json document = good;
      document[at] = other;
      return folder.write("bad.json", document.dump());
    };
    for (const Json& wrong : {Json(-1), Json(-1e-300), Json("1"), Json(true), Json(nullptr),
                              Json::array({1}), Json::object()}) {
      CAPTURE(wrong);
      check_unread(with(wrong), ": " + path + ": must be ");
    }
    const bool zero = may_be_zero.count(name) == 1 || (pointer.find("/scored/") != pointer.npos &&
                                                       name == "seconds_per_key_component");
    if (!zero) check_unread(with(0), ": " + path + ": must be ");
    if (zero) CHECK_NOTHROW(read_profile(with(0)));
    Json document = good;
    document[at.parent_pointer()].erase(name);
    check_unread(folder.write("bad.json", document.dump()), "key " + path + " is missing");
  }
  CHECK(numbers > 100);
  std::string nan = good.dump();
  const std::string from = "\"read_bytes_per_second\":", with = from + "NaN";
  nan.replace(nan.find(from), nan.find('}', nan.find(from)) - nan.find(from), with);
  check_unread(folder.write("bad.json", nan), "not valid JSON at column ");

  // By the commands that take one, before they look at anything else.
  Json document = good;
  document["memory"]["read_bytes_per_second"] = 0;
  const std::string bad = folder.write("bad.json", document.dump());
  for (const Words& command :
       {Words{"plan", "--model", "/nowhere"}, Words{"bench", "--model", "/nowhere"}})
    check_refused(hydrant_run(command + Words{"--profile", bad}), 2,
                  bad + ": memory.read_bytes_per_second: must be a number of at least 1, not 0");
}

TEST_CASE(
    "a plan is a configuration that validates and runs, its prediction beside what is measured") {
  const Tiny t;
  const Planning p;
  const Words tiny{"--prompt-len", "20",  "--output-len",    "12",     "--policy", "h2o",
                   "--budget",     "50%", "--memory-device", "600KiB", "--rows",   "4"};
  const Outcome o = p.plan(t.model.path(), tiny + Words{"--explain"});
  CAPTURE(o.err, o.out);
  REQUIRE(o.code == 0);
  CHECK_THAT(o.err, Catch::Contains("measured elsewhere (beads, not "));
  CHECK_THAT(o.out, Catch::Contains("bound by") && Catch::Contains("compute: products") &&
                        Catch::Contains("memory: device "));
  CHECK(hydrant_run({"validate", p.config}).code == 0);
  const Outcome bench = hydrant_run({"bench", "--config", p.config, "--repeats", "1", "--warmup",
                                     "0", "--json", p.folder.file("bench.json")});
  CAPTURE(bench.err);
  CHECK(bench.code == 0);
  CHECK_THAT(bench.out, Catch::Contains("predicted"));
  const Json rows = Json::parse(read_text(p.folder.file("bench.json")))["rows"];
  CHECK(rows[0]["predicted_tokens_per_second"] > 0);
  const Outcome text =
      hydrant_run({"generate", "--config", p.config, "--prompt", "ab", "--max-new-tokens", "3"});
  CAPTURE(text.err);
  CHECK(text.code == 0);
  // It may replace itself, and nothing else.
  CHECK(p.plan(t.model.path(), tiny).code == 0);
  const std::string other = p.folder.write("other.json", "{\"seed\": 1}");
  check_refused(
      hydrant_run({"plan", "--model", t.model.path(), "--profile", p.profile, "--output", other}),
      2, "--output: " + other + " is not replaced");
}

TEST_CASE("a smaller cache lets the planner choose a batch several times larger") {
  const Planning p;
  const std::string shape = kShapes + "smollm2-135m.json";
  const int full = batch_of(p.planned(shape, kTight + kHalves));
  const Json evicting = p.planned(shape, kTight + kHalves + Words{"--policy", "h2o"});
  CAPTURE(full, evicting.dump());
  CHECK(batch_of(evicting) >= 3 * full);
  CHECK(!evicting.contains("model"));  // a shape
  CHECK(hydrant_run({"validate", p.config}).code == 0);
  // Not more than with 20 %: the fastest plan for a still smaller cache may have fewer rows.
  const Json smaller =
      p.planned(shape, kTight + kHalves + Words{"--policy", "h2o", "--budget", "10%"});
  CHECK(batch_of(smaller) >= 3 * full);
}

TEST_CASE("a profile that lacks what a plan asks for is named") {
  const TemporaryFolder folder;
  const MachineRates r = read_profile(folder.write("some.json", profile_text(some_rates(), {})));
  const auto lacks = [&](const auto& ask, const std::string& what) {
    CHECK_THROWS_WITH(ask(), Catch::Contains("some.json: no rates of " + what));
  };
  lacks([&] { (void)r.product(DType::q4_0, Activations::int8); }, "products of q4_0 weights");
  lacks([&] { (void)r.attention_of(DType::q8_0); }, "attention to q8_0 keys and values");
  lacks([&] { (void)r.pack_byte(DType::q6_k); }, "packing q6_k weights");
}

TEST_CASE("where host memory is short a plan reads with fewer lanes") {
  const Planning p;
  const Json config =
      p.planned(kShapes + "smollm2-135m.json",
                kHalves + Words{"--memory-device", "220MB", "--memory-host", "3MiB"});
  CAPTURE(config.dump());
  CHECK(config["prefetch"]["disk_lanes"] == 1);
}

TEST_CASE("less memory on the device is never predicted to be faster") {
  const Planning p;
  const std::string shape = kShapes + "smollm2-135m.json";
  double before = 1e300;
  // What is as fast within a hundredth counts as the same.
  for (const char* device : {"600MB", "300MB", "250MB", "200MB"}) {
    CAPTURE(device);
    const double speed =
        speed_of(p.plan(shape, kHalves + Words{"--memory-device", device, "--memory-host", "60MB",
                                               "--rows", "24", "--policy", "h2o"}));
    CHECK(speed <= before * 1.02);
    before = speed;
  }
}

TEST_CASE("a plan says when nothing needs to move, and when nothing fits") {
  const Planning p;
  const std::string shape = kShapes + "smollm2-135m.json";
  CHECK_THAT(p.plan(shape, {"--rows", "2"}).out,
             Catch::Contains("no offloading is fastest: all of it fits on the device"));
  const Outcome tight = p.plan(shape, kTight + Words{"--rows", "2"});
  CHECK_THAT(tight.out, Catch::Contains("the cpu alone, computing where host memory has it all"));
  check_refused(p.plan(shape, {"--memory-device", "1MiB", "--rows", "2"}), 3,
                "--memory-device: 1.0 MiB are not enough: this run needs ");
  check_refused(p.plan(shape, {"--prompt-len", "9000"}), 2, "is beyond the model's 8192 positions");
  check_refused(hydrant_run({"plan", "--model", shape}), 2, "--profile: is needed");
  check_refused(hydrant_run({"plan", "--model", shape, "--profile", "/nowhere"}), 2, "/nowhere");
  check_refused(hydrant_run({"profile", "--folder", "/nowhere"}), 2, "--folder: /nowhere");
  check_refused(hydrant_run({"profile", "--model", "/nowhere"}), 2, "/nowhere");
  const Tiny t;
  check_refused(hydrant_run({"profile", "--model", t.model.path()}), 2,
                "no file of at least 32 MiB, which measuring takes");
}
