// Configurations: what is refused, in which words, and what comes back out.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "runtime/apps/check_config.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/json_text.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"

using namespace hydrant;

namespace {

// The message that a document is refused with, "" if it is not.
std::string refusal(const std::string& document) {
  RunConfig config;
  Sources sources;
  sources.set_file("run.json");
  try {
    read_config(parse_json(document, "run.json", Fault::bad_config, Numbers::as_written),
                "run.json", config, sources);
    check_config(config, sources, Command::validate);
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::bad_config);
    return e.what();
  }
  return "";
}

constexpr const char* kBudgetRule =
    "must be 1 to 1073741824 slots (204), or a share above 0% and up to 100% with at most four "
    "decimals, of prompt + output (\"20%\") or of the prompt (\"20%p\")";

struct Wrong {
  const char *document, *path, *rule;
};

}  // namespace

TEST_CASE("every wrong configuration is refused with its path and the rule it breaks") {
  const auto wrong = GENERATE(values<Wrong>({
      {R"([1, 2])", "run.json:", "must be an object"},
      {R"({"cache": {"recnt": 4}})", "run.json: cache.recnt:", "did you mean 'cache.recent'"},
      {R"({"cahce": {"recent": 4}})", "run.json: cahce:", "did you mean 'cache'"},
      {R"({"recent": 4})", "run.json: recent:", "did you mean 'cache.recent'"},
      {R"({"cache": {"threads": 4}})", "run.json: cache.threads:", "did you mean 'threads'"},
      {R"({"zzzzzzzz": 1})", "run.json: zzzzzzzz:", "unknown key"},
      {R"({"cache": 4})", "run.json: cache:", "must be an object"},
      {R"({"cache": {"policy": "h20"}})", "run.json: cache.policy:", "one of full, local, sinks"},
      {R"({"cache": {"policy": 3}})", "run.json: cache.policy:", "not 3"},
      {R"({"cache": {"policy": "h2o", "heavy": -3, "recent": 8}})",
       "run.json: cache.heavy:", "an integer from 0"},
      {R"({"cache": {"policy": "h2o", "heavy": 2.5, "recent": 8}})",
       "run.json: cache.heavy:", "an integer"},
      {R"({"cache": {"policy": "h2o", "heavy": "4", "recent": 8}})",
       "run.json: cache.heavy:", "not \"4\""},
      {R"({"cache": {"policy": "h2o", "heavy": 99999999999999999999, "recent": 8}})",
       "run.json: cache.heavy:", "an integer"},
      {R"({"cache": {"policy": "h2o", "heavy": null, "recent": 8}})",
       "run.json: cache.heavy:", "not null"},
      {R"({"cache": {"policy": "h2o", "heavy": 0, "recent": 0}})",
       "run.json: cache.recent:", "1 to 1073741824 slots together, are 0"},
      {R"({"cache": {"policy": "h2o"}})", "run.json: cache.budget:", "needs it"},
      {R"({"cache": {"policy": "full", "heavy": 4}})", "run.json: cache.heavy:", "no such region"},
      {R"({"cache": {"policy": "local", "heavy": 4, "recent": 4}})",
       "run.json: cache.heavy:", "it has recent"},
      {R"({"cache": {"policy": "full", "budget": "20%"}})",
       "run.json: cache.budget:", "keeps everything"},
      {R"({"cache": {"policy": "h2o", "heavy": 4, "recent": 4, "sinks": 1, "budget": 9}})",
       "run.json: cache.budget:", "beside all of"},
      {R"({"cache": {"policy": "h2o", "heavy": 40, "budget": 9}})",
       "run.json: cache.budget:", "it must be 40 to 1073741824 slots, or a share"},
      {R"({"cache": {"policy": "h2o", "budget": "0%"}})", "run.json: cache.budget:", kBudgetRule},
      {R"({"cache": {"policy": "h2o", "budget": "120%"}})", "run.json: cache.budget:", kBudgetRule},
      {R"({"cache": {"policy": "h2o", "budget": "20 %"}})", "run.json: cache.budget:", kBudgetRule},
      {R"({"cache": {"policy": "h2o", "budget": -1}})", "run.json: cache.budget:", kBudgetRule},
      {R"({"cache": {"policy": "h2o", "budget": 9, "layer_budgets": ["9"]}})",
       "run.json: cache.layer_budgets:", "beside run.json: cache.budget"},
      {R"({"cache": {"policy": "h2o", "heavy": 9, "layer_budgets": ["20", "4"]}})",
       "run.json: cache.layer_budgets:",
       "4 slots cannot hold the 9 of the regions that are given; it must be 9 to"},
      {R"({"cache": {"positions": "rank"}})", "run.json: cache.positions:", "original, cache"},
      {R"({"cache": {"dtype": "int8"}})", "run.json: cache.dtype:", "auto, f32, f16, bf16"},
      {R"({"compute": {"dtype": "f16"}})", "run.json: compute.dtype:", "auto, f32"},
      {R"({"batch": {"rows_per_group": 0}})", "run.json: batch.rows_per_group:", "from 1"},
      {R"({"batch": {"groups": 1.0}})", "run.json: batch.groups:", "an integer"},
      {R"({"batch": {"prefill_chunk": true}})", "run.json: batch.prefill_chunk:", "not true"},
      {R"({"memory": {"device": "64 MiB"}})", "run.json: memory.device:", "not \"64 MiB\""},
      {R"({"memory": {"device": 0}})", "run.json: memory.device:", "from 1"},
      {R"({"memory": {"host": -1}})", "run.json: memory.host:", "bytes"},
      {R"({"memory": {"host": 1.5}})", "run.json: memory.host:", "bytes"},
      {R"({"memory": {"disk": "4GiB/s"}})", "run.json: memory.disk:", "bytes"},
      {R"({"memory": {"disk": "9999999999GiB"}})", "run.json: memory.disk:", "bytes"},
      {R"({"memory": {"folder": ""}})", "run.json: memory.folder:", "folder"},
      {R"({"memory": {"link": "fast"}})", "run.json: memory.link:", "bytes a second"},
      {R"({"memory": {"link": 0}})", "run.json: memory.link:", "from 1"},
      {R"({"memory": {"gpu": 1}})", "run.json: memory.gpu:", "unknown key"},
      {R"({"placement": "fast"})", "run.json: placement:", "must be \"auto\", six percentages"},
      {R"({"placement": 4})", "run.json: placement:", "not 4"},
      {R"({"placement": [100, 0, 100, 0]})", "run.json: placement:", "six percentages"},
      {R"({"placement": [80, 80, 100, 0, 100, 0]})", "run.json: placement:", "80 + 80 is 160"},
      {R"({"placement": [20, 80, 0, 100, 0, 100.5]})", "run.json: placement[5]:", "0 to 100"},
      {R"({"placement": [-20, 80, 0, 100, 0, 100]})", "run.json: placement[0]:", "not -20"},
      {R"({"placement": [20, 80, 60, 60, 0, 100]})", "run.json: placement:", "of cache must be"},
      {R"({"placement": {"weight": {"device": 20}}})",
       "run.json: placement.weight:", "did you mean 'placement.weights'"},
      {R"({"placement": {"weights": 20}})", "run.json: placement.weights:", "not 20"},
      {R"({"placement": {"weights": {}}})", "run.json: placement.weights:", "percentages"},
      {R"({"placement": {"weights": [20, 80]}})", "run.json: placement.weights:", "percentages"},
      {R"({"placement": {"weights": {"gpu": 20}}})", "run.json: placement.weights.gpu:", "unknown"},
      {R"({"placement": {"weights": {"dsk": 20}}})",
       "run.json: placement.weights.dsk:", "did you mean 'disk'"},
      {R"({"placement": {"weights": {"device": 80, "host": 80}}})",
       "run.json: placement.weights:", "device 80 + host 80 is 160"},
      {R"({"placement": {"cache": {"device": 80, "host": 10, "disk": 9}}})",
       "run.json: placement.cache:", "device 80 + host 10 + disk 9 is 99"},
      {R"({"placement": {"activations": {"disk": 90}}})",
       "run.json: placement.activations:", "100 together; device 0 + host 0 + disk 90 is 90"},
      {R"({"placement": {"weights": {"device": 120}}})",
       "run.json: placement.weights.device:", "0 to 100, not 120"},
      {R"({"placement": {"weights": {"host": "20"}}})",
       "run.json: placement.weights.host:", "not \"20\""},
      {R"({"prefetch": {"weight_slots": 1}})", "run.json: prefetch.weight_slots:", "from 2 to 64"},
      {R"({"prefetch": {"cache_slots": 65}})", "run.json: prefetch.cache_slots:", "from 2 to 64"},
      {R"({"prefetch": {"disk_lanes": 0}})", "run.json: prefetch.disk_lanes:", "from 1 to 16"},
      {R"({"prefetch": {"slots": 2}})", "run.json: prefetch.slots:", "unknown key"},
      {R"({"overlap": "yes"})", "run.json: overlap:", "true or false"},
      {R"({"cache_compute": "gpu"})", "run.json: cache_compute:", "auto, device, host"},
      {R"({"sampling": {"temperature": -0.1}})", "run.json: sampling.temperature:", "at least 0"},
      {R"({"sampling": {"temperature": "hot"}})", "run.json: sampling.temperature:", "a number"},
      {R"({"sampling": {"top_p": 0}})", "run.json: sampling.top_p:", "above 0"},
      {R"({"sampling": {"top_p": 1.01}})", "run.json: sampling.top_p:", "at most 1"},
      {R"({"sampling": {"repetition_penalty": 0}})",
       "run.json: sampling.repetition_penalty:", "above 0"},
      {R"({"seed": -1})", "run.json: seed:", "an integer from 0"},
      {R"({"seed": 18446744073709551616})", "run.json: seed:", "18446744073709551615"},
      {R"({"max_new_tokens": 0})", "run.json: max_new_tokens:", "from 1"},
      {R"({"ignore_eos": 1})", "run.json: ignore_eos:", "true or false"},
      {R"({"stop": "text"})", "run.json: stop:", "a list"},
      {R"({"stop": [""]})", "run.json: stop:", "non-empty"},
      {R"({"stop_ids": [-1]})", "run.json: stop_ids:", "from 0"},
      {R"({"logprobs": 21})", "run.json: logprobs:", "to 20"},
      {R"({"threads": 5000})", "run.json: threads:", "to 1024"},
      {R"({"resume": true, "overwrite": true})", "run.json: resume:", "beside run.json: overwrite"},
      {R"({"device": "abacus"})", "run.json: device:", "this build's backends (cpu"},
      {R"({"isa": "sse9"})", "run.json: isa:", "generic, avx2"},
      {R"({"model": ""})", "run.json: model:", "path"},
      {R"({"bench": {"batch": []}})", "run.json: bench.batch:", "non-empty list"},
      {R"({"bench": {"batch": [0]}})", "run.json: bench.batch:", "from 1"},
      {R"({"bench": {"policy": ["h20"]}})", "run.json: bench.policy:", "policies"},
      {R"({"seed": 1, "seed": 2})", "run.json:", "occurs twice"},
      {R"({"seed": NaN})", "run.json:", "not valid JSON"},
      {R"({"sampling": {"temperature": 1e999}})", "run.json:", "not valid JSON"},
      {R"({"seed": 1)", "run.json:", "not valid JSON"},
      {"", "run.json:", "not valid JSON"},
      {"{\"model\": \"\xff\"}", "run.json:", "not valid JSON"},
  }));
  CAPTURE(wrong.document);
  const std::string message = refusal(wrong.document);
  CHECK_THAT(message, Catch::StartsWith(wrong.path));
  CHECK_THAT(message, Catch::Contains(wrong.rule));
  CHECK(message.find('\n') == std::string::npos);
}

TEST_CASE("a message quotes a number as it was written, in a file and as a flag") {
  for (const char* number : {"1e3", "2.50", "99999999999999999999", "-1E2"}) {
    for (const char* path : {"cache.heavy", "threads", "seed", "sampling.top_p"}) {
      for (const Key& key : config_keys()) {
        if (key.path != path) continue;
        CAPTURE(number, path);
        const std::string place = path, end = fmt::format(", not {}", number);
        const size_t dot = place.find('.');
        const std::string document =
            dot == place.npos ? fmt::format(R"({{"{}": {}}})", place, number)
                              : fmt::format(R"({{"{}": {{"{}": {}}}}})", place.substr(0, dot),
                                            place.substr(dot + 1), number);
        CHECK_THAT(refusal(document), Catch::EndsWith(end));
        RunConfig config;
        Sources sources;
        CHECK_THROWS_WITH(read_flag(key, {number}, config, sources), Catch::EndsWith(end));
      }
    }
    CHECK_THAT(refusal(fmt::format(R"({{"stop_ids": [1, {}]}})", number)),
               Catch::EndsWith(fmt::format(", not {0} in [1,{0}]", number)));
    CHECK_THAT(refusal(fmt::format(R"({{"cache": {{"budget": {}}}}})", number)),
               Catch::EndsWith(fmt::format(", not {}", number)));
  }
}

TEST_CASE("the effective configuration writes a whole number as one") {
  for (const auto& [written, shown] : std::map<std::string, std::string>{
           {"1", "1"}, {"1e1", "10"}, {"0.70", "0.7"}, {"100", "100"}, {"1e-1", "0.1"}}) {
    RunConfig config;
    Sources sources;
    const std::string document = fmt::format(R"({{"sampling": {{"temperature": {}}}}})", written);
    read_config(parse_json(document, "a", Fault::bad_config, Numbers::as_written), "a", config,
                sources);
    CHECK(effective_config(config, Command::generate)["sampling"]["temperature"].dump() == shown);
  }
}

TEST_CASE("$schema is passed over at the top, and only there") {
  CHECK(refusal(R"({"$schema": "../schema/run.json", "seed": 1})").empty());
  CHECK_THAT(refusal(R"({"cache": {"$schema": "run.json"}})"),
             Catch::StartsWith("run.json: cache.$schema: unknown key"));
}

TEST_CASE("deep nesting is refused, not followed") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK_THAT(refusal(deep), Catch::Contains("nested deeper"));
}

TEST_CASE("the effective configuration is a configuration that says the same") {
  const std::string document = R"({"cache": {"policy": "h2o", "budget": 204, "sinks": 2,
      "positions": "cache"}, "seed": 18446744073709551615, "stop": ["\u00e9", "b"],
      "sampling": {"temperature": 0.7}, "bench": {"batch": [1, 32]}, "prompt": "",
      "stop_ids": [7]})";
  RunConfig config, again;
  Sources sources;
  read_config(parse_json(document, "a", Fault::bad_config), "a", config, sources);
  const Json shown = effective_config(config, Command::validate);
  read_config(shown, "b", again, sources);
  CHECK(effective_config(again, Command::validate) == shown);
  CHECK(shown["cache"]["budget"] == "204");
  CHECK(shown["seed"] == 18446744073709551615u);
  CHECK(shown["sampling"]["temperature"] == 0.7);
  CHECK(shown["stop"] == Json({"\u00e9", "b"}));
  CHECK_FALSE(effective_config(config, Command::generate).contains("bench"));
}

TEST_CASE("a budget of slots is a number or a text, wherever one stands") {
  for (const char* path : {"cache.budget", "cache.layer_budgets", "bench.budget"})
    for (const Key& key : config_keys()) {
      if (key.path != path) continue;
      CAPTURE(path);
      const bool list = key.path != "cache.budget";
      const auto read = [&](const Json& value) {
        RunConfig config;
        key.read(config, list ? Json::array({"20%", value}) : value, "here");
        const Json written = key.write(config);
        return list ? written[1] : written;
      };
      CHECK(read(204u) == "204");
      CHECK(read("204") == "204");
      CHECK(read("12.5%p") == "12.5%p");
      for (const Json& wrong : {Json(0u), Json(-4), Json(2.5), Json(true), Json(), Json("20 %"),
                                Json(1099511627776u), Json::array({4u})})
        CHECK_THROWS_WITH(read(wrong), Catch::StartsWith("here: must be "));
    }
}

TEST_CASE("flags mean what their keys mean") {
  for (const Key& key : config_keys()) {
    CAPTURE(key.path);
    std::string words = key.path;  // the flag's words are the key's, or its last ones
    for (char& c : words)
      if (c == '_' || c == '.') c = '-';
    const std::string flag = key.flag.substr(2);
    CHECK((words == flag || words.ends_with("-" + flag)));
    CHECK_FALSE(key.help.empty());
  }
  RunConfig config;
  Sources sources;
  std::map<std::string, const Key*> keys;
  for (const Key& key : config_keys()) keys[key.path] = &key;
  read_flag(*keys["bench.batch"], {"1,32"}, config, sources);
  CHECK(config.bench.batch == std::vector<int32_t>{1, 32});
  read_flag(*keys["stop"], {"a,b", "c"}, config, sources);
  CHECK(config.stop == std::vector<std::string>{"a,b", "c"});
  read_flag(*keys["cache.budget"], {"20%p"}, config, sources);
  CHECK(config.cache.budget == "20%p");
  CHECK_THROWS_WITH(read_flag(*keys["bench.batch"], {"1,,2"}, config, sources),
                    Catch::StartsWith("--batch: must be"));
  CHECK_THROWS_WITH(read_flag(*keys["sampling.temperature"], {"nan"}, config, sources),
                    Catch::StartsWith("--temperature: must be"));
  CHECK_THROWS_WITH(read_flag(*keys["threads"], {"2 "}, config, sources),
                    Catch::StartsWith("--threads: must be"));
}

TEST_CASE("a flag's policy sets a file's sizes aside, its own wrong sizes are errors") {
  RunConfig config;
  Sources sources;
  read_config(
      parse_json(R"({"cache": {"policy": "h2o", "budget": "20%"}})", "f", Fault::bad_config), "f",
      config, sources);
  for (const Key& key : config_keys())
    if (key.path == "cache.policy") read_flag(key, {"full"}, config, sources);
  CHECK_NOTHROW(check_config(config, sources, Command::validate));
  for (const Key& key : config_keys())
    if (key.path == "cache.budget") read_flag(key, {"20%"}, config, sources);
  CHECK_THROWS_WITH(check_config(config, sources, Command::validate),
                    Catch::StartsWith("--budget: "));
}

TEST_CASE("numbers in JSON read back as the same float") {
  for (const float f : {0.1f, -1.2345678f, 3.4e38f, 1e-45f, -0.0f, 16777217.f}) {
    const std::string text = exact(f).dump();
    CHECK(std::strtof(text.c_str(), nullptr) == f);
    CHECK(float(Json::parse(text).get<double>()) == f);
  }
  CHECK_THROWS_AS(exact(std::nanf("")), Error);
}
