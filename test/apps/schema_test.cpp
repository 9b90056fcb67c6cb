// configs/ says what the program does: the schema documents each key, its rule and its default, and
// every configuration in the folder is one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "runtime/apps/check_config.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/json_text.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"

using namespace hydrant;

namespace {

const std::string kConfigs = HYDRANT_TEST_DIR "/../configs/";

Json schema() {
  const std::string path = kConfigs + "schema/run.json";
  return parse_json(read_text(path), path, Fault::bad_file);
}

// The schema's entry of a key; null if there is none.
Json entry(const Json& schema, const std::string& path) {
  const size_t dot = path.find('.');
  const Json& top = schema["properties"];
  if (dot == path.npos) return top.value(path, Json());
  const Json section = top.value(path.substr(0, dot), Json());
  return section.is_null() ? section : section["properties"].value(path.substr(dot + 1), Json());
}

bool accepts(const Key& key, const Json& value) {
  RunConfig config;
  try {
    key.read(config, value, "here");
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Values at and just beyond the limits that the schema states.
void check_limits(const Key& key, const Json& rule, bool in_list) {
  const auto wrap = [&](const Json& value) { return in_list ? Json::array({value}) : value; };
  const auto check = [&](const Json& value, bool good) {
    CAPTURE(value);
    CHECK(accepts(key, wrap(value)) == good);
  };
  const bool whole = rule.value("type", Json()) == "integer";
  if (rule.contains("minimum")) {
    check(rule["minimum"], true);
    check(rule["minimum"].get<double>() - 1, false);
  }
  if (rule.contains("exclusiveMinimum")) check(rule["exclusiveMinimum"], false);
  if (rule.contains("maximum")) {
    check(rule["maximum"], true);
    check(rule["maximum"].get<double>() * 2 + 1, false);
  }
  if (whole) check(rule["minimum"].get<double>() + 0.5, false);
  if (rule.contains("enum"))
    for (const Json& option : rule["enum"]) check(option, true);
  if (rule.value("type", Json()) == "boolean") check(true, true);
  if (rule.contains("minLength")) check("", false);
  check(nullptr, false);
  check(Json::object(), false);
}

}  // namespace

TEST_CASE("the schema has every key, with its help, rule and default") {
  const Json document = schema();
  const Json defaults = effective_config(RunConfig(), Command::validate);
  for (const Key& key : config_keys()) {
    CAPTURE(key.path);
    const Json rule = entry(document, key.path);
    REQUIRE(rule.is_object());
    CHECK(rule["description"] == key.help);
    std::string place = key.path;
    std::replace(place.begin(), place.end(), '.', '/');
    const Json::json_pointer at(fmt::format("/{}", place));
    const Json by_default = defaults.contains(at) ? defaults[at] : Json();
    CHECK(rule.value("default", Json()) == by_default);
    const bool list = rule.value("type", Json()) == "array";
    check_limits(key, list ? rule["items"] : rule, list);
    if (list) CHECK(accepts(key, Json::array()) == !rule.contains("minItems"));
  }
}

TEST_CASE("the schema has no key that the program does not know") {
  std::set<std::string> known{"$schema"};
  for (const Key& key : config_keys()) known.insert(key.path);
  const Json all = schema();  // outlives the loop over its parts
  for (const auto& [name, rule] : all["properties"].items()) {
    if (!rule.contains("properties")) {
      CHECK(known.count(name) == 1);
      continue;
    }
    CHECK(rule["additionalProperties"] == false);
    for (const auto& [leaf, inner] : rule["properties"].items())
      CHECK(known.count(name + "." + leaf) == 1);
  }
}

TEST_CASE("sizes are written for the program as the schema has them") {
  const Json document = schema();
  const std::vector<std::string> numbers{"1",   "0512", "64",  "1.5", "0.75", "001.250", ".5",
                                         "5.",  ".",    "",    "-1",  "+1",   "-.5",     "1e3",
                                         "1,5", "0x10", "nan", "inf", "1.2.3"};
  const std::vector<std::string> units{"",    "B",   "KB", "MB",   "GB",   "TB",   "KiB", "MiB",
                                       "GiB", "TiB", "K",  "M",    "Ki",   "iB",   "mib", "kB",
                                       "PB",  "PiB", "BB", " MiB", "MiBs", "MiB ", "\n"};
  for (const char* path : {"memory.device", "memory.host", "memory.disk", "memory.link"}) {
    const std::regex pattern(entry(document, path)["pattern"].get<std::string>());
    const auto key = std::find_if(config_keys().begin(), config_keys().end(),
                                  [&](const Key& k) { return k.path == path; });
    size_t good = 0;
    for (const std::string& number : numbers)
      for (const std::string& unit : units)
        for (const char* pace : {"", "/s", "/m", "/s/s"}) {
          const std::string size = number + unit + pace;
          const bool fits = std::regex_match(size, pattern);
          CAPTURE(path, size);
          // The schema has no limits for texts: parts of a byte are none.
          if (!(fits && number == "0.75" && (unit.empty() || unit == "B")))
            CHECK(accepts(*key, size) == fits);
          good += fits;
        }
    CHECK(good > 50);
  }
}

TEST_CASE("every configuration in the folder is valid") {
  size_t files = 0;
  for (const char* folder : {"runs", "policies"})
    for (const auto& file : std::filesystem::directory_iterator(kConfigs + folder)) {
      CAPTURE(file.path().string());
      RunConfig config;
      Sources sources;
      CHECK_NOTHROW(read_config_file(file.path().string(), config, sources));
      CHECK_NOTHROW(check_config(config, sources, Command::validate));
      files++;
    }
  CHECK(files >= 10);
}
