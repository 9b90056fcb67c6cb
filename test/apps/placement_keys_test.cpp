// Memory and placement as they are written down: files, flags and FlexGen's short form.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runtime/apps/check_config.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/sizes.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

using namespace hydrant;

namespace {

struct Given {
  RunConfig config;
  Sources sources;
  Json effective() const { return effective_config(config, Command::generate); }
};

void read(Given& given, const std::string& document) {
  read_config(parse_json(document, "f", Fault::bad_config), "f", given.config, given.sources);
}

void flag(Given& given, const std::string& path, const std::string& text) {
  for (const Key& key : config_keys())
    if (key.path == path) read_flag(key, {text}, given.config, given.sources);
}

Json shares(int device, int host, int disk) {
  return {{"device", device}, {"host", host}, {"disk", disk}};
}

}  // namespace

TEST_CASE("bytes are numbers with units of 1000 or of 1024") {
  CHECK(parse_bytes("0") == 0u);
  CHECK(parse_bytes("512") == 512u);
  CHECK(parse_bytes("0.5KiB") == 512u);
  CHECK(parse_bytes("512B") == 512u);
  CHECK(parse_bytes("64MiB") == uint64_t{64} << 20);
  CHECK(parse_bytes("64MB") == 64'000'000u);
  CHECK(parse_bytes("1.5GiB") == uint64_t{3} << 29);
  CHECK(parse_bytes("0.5KiB") == 512u);
  CHECK(parse_bytes("3TB") == 3'000'000'000'000u);
  CHECK(parse_bytes("1048576TiB") == uint64_t{1} << 60);
  CHECK(parse_rate("3GB/s") == 3'000'000'000u);
  CHECK(parse_rate("3GB") == 3'000'000'000u);
  for (const char* wrong :
       {"",        "B",          "MiB",
        ".5MiB",   "5.MiB",      ".",
        "-1",      "+1",         "64 MiB",
        " 64MiB",  "64MiBs",     "64mib",
        "64Mi",    "64M",        "1e3",
        "nan",     "inf",        "0x10",
        "64MiB/s", "1048577TiB", "99999999999999999999999999999999999999999999"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_bytes(wrong));
  }
  CHECK_FALSE(parse_rate("3GB/m"));
}

TEST_CASE("the whole offload configuration is read, and shown as it was understood") {
  Given given;
  read(given, R"({"memory": {"device": "64MiB", "host": 1000, "disk": "4GiB", "folder": "/var/tmp",
      "link": "3GB/s"}, "placement": {"weights": {"device": 0, "host": 50, "disk": 50}},
      "prefetch": {"weight_slots": 3, "cache_slots": 4}, "overlap": false, "cache_compute": "host"})");
  const Json shown = given.effective();
  CHECK(shown["memory"]["device"] == 64 << 20);
  CHECK(shown["memory"]["host"] == 1000);
  CHECK(shown["memory"]["disk"] == uint64_t{4} << 30);
  CHECK(shown["memory"]["folder"] == "/var/tmp");
  CHECK(shown["memory"]["link"] == 3'000'000'000u);
  CHECK(shown["placement"]["weights"] == shares(0, 50, 50));
  CHECK(shown["placement"]["cache"] == shares(100, 0, 0));
  CHECK(shown["placement"]["activations"] == shares(100, 0, 0));
  CHECK(shown["prefetch"]["weight_slots"] == 3);
  CHECK(shown["prefetch"]["cache_slots"] == 4);
  CHECK(shown["overlap"] == false);
  CHECK(shown["cache_compute"] == "host");
  Given again;
  read(again, shown.dump());
  CHECK(again.effective() == shown);
}

TEST_CASE("what is not placed anywhere else is on disk, and auto is the default") {
  Given given;
  CHECK(given.effective()["placement"] == "auto");
  read(given, R"({"placement": {"weights": {"device": 20.5, "host": 30}}})");
  CHECK(given.config.placement.weights == Shares{20.5, 30, 49.5});
  CHECK_FALSE(given.config.placement.automatic);
  read(given, R"({"placement": {"cache": {"host": 40}}})");
  CHECK(given.config.placement.cache == Shares{0, 40, 60});
  CHECK(given.config.placement.weights == Shares{20.5, 30, 49.5});
  read(given, R"({"placement": "auto"})");
  CHECK(given.effective()["placement"] == "auto");
  read(given, R"({"placement": {"cache": {"disk": 100}}})");
  CHECK(given.config.placement.weights == Shares{100, 0, 0});
}

TEST_CASE("FlexGen's six numbers are device and host of weights, cache and activations") {
  for (const bool by_flag : {false, true}) {
    Given given;
    if (by_flag)
      flag(given, "placement", "20,80,0,100,10,40.5");
    else
      read(given, R"({"placement": [20, 80, 0, 100, 10, 40.5]})");
    CHECK(given.config.placement.weights == Shares{20, 80, 0});
    CHECK(given.config.placement.cache == Shares{0, 100, 0});
    CHECK(given.config.placement.activations == Shares{10, 40.5, 49.5});
  }
}

TEST_CASE("flags of placement: shares by home, the file's others stay") {
  Given given;
  read(given, R"({"placement": [20, 80, 0, 100, 0, 100]})");
  flag(given, "placement.weights", "30,50,20");
  CHECK(given.config.placement.weights == Shares{30, 50, 20});
  CHECK(given.config.placement.cache == Shares{0, 100, 0});
  flag(given, "placement.weights", "30");
  CHECK(given.config.placement.weights == Shares{30, 0, 70});
  flag(given, "memory.device", "64MiB");
  CHECK(given.config.memory.device == uint64_t{64} << 20);
  flag(given, "memory.device", "4096");
  CHECK(given.config.memory.device == 4096u);
  for (const char* wrong : {"", "a", "1,2,3,4", "50,60", "101", "10,20,30", "10,,20"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(flag(given, "placement.weights", wrong),
                      Catch::StartsWith("--placement-weights"));
  }
  CHECK_THROWS_WITH(flag(given, "placement", "20,80,0,100"), Catch::StartsWith("--placement: "));
}

TEST_CASE("two flags may not both place the weights") {
  Given given;
  flag(given, "placement", "auto");
  flag(given, "placement.weights", "30");
  CHECK_THROWS_WITH(check_config(given.config, given.sources, Command::validate),
                    "--placement: cannot stand beside --placement-weights");
}
