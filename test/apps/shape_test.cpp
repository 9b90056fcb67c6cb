// Shapes: models known by their description alone.
#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("inspect tells of a shape what it tells of the model") {
  const Tiny t;
  Json config = Json::parse(read_text(t.model.file("config.json")));
  config["torch_dtype"] = "float32";  // as the weights are stored
  const std::string shape = t.work.write("shape.json", config.dump());
  const std::vector<std::string> more{"--json",   "--batch", "3",        "--length", "40",
                                      "--policy", "h2o",     "--budget", "25%"};
  const auto inspected = [&](const std::string& model) {
    std::vector<std::string> words{"inspect", model};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = hydrant_run(words);
    CAPTURE(o.err);
    REQUIRE(o.code == 0);
    return Json::parse(o.out);
  };
  const Json model = inspected(t.model.path()), alone = inspected(shape);
  CHECK(alone["architecture"] == model["architecture"]);
  for (const char* key : {"tensors", "stored_bytes", "bytes", "formats", "activations"})
    CHECK(alone["weights"][key] == model["weights"][key]);
  for (const char* key : {"kv_bytes", "full_kv_bytes", "workspace_bytes", "weight_bytes"})
    CHECK(alone["memory"][key] == model["memory"][key]);
  CHECK(model["weights"]["there"] == true);
  CHECK(alone["weights"]["there"] == false);
  CHECK(alone["tokenizer"].is_null());
  CHECK_THAT(hydrant_run({"inspect", shape}).out, Catch::Contains("none here, a shape only"));
  config.erase("torch_dtype");
  CHECK(inspected(t.work.write("silent.json", config.dump()))["weights"]["formats"] == "bf16");
}

TEST_CASE("every shape in the folder can be inspected") {
  size_t files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(HYDRANT_TEST_DIR "/../configs/models")) {
    const std::string path = file.path().string();
    CAPTURE(path);
    const Outcome o =
        hydrant_run({"inspect", path, "--json", "--policy", "h2o", "--budget", "20%"});
    CAPTURE(o.err);
    REQUIRE(o.code == 0);
    const Json doc = Json::parse(o.out);
    const int64_t parameters = doc["architecture"]["parameters"];
    CHECK(doc["weights"]["stored_bytes"] == 2 * parameters);
    CHECK(doc["memory"]["kv_bytes"] < doc["memory"]["full_kv_bytes"]);
    files++;
  }
  CHECK(files >= 8);
}

TEST_CASE("a shape is told from a model where one is needed, and from other JSON") {
  const Tiny t;
  const std::string shape = t.model.file("config.json");
  for (const std::vector<std::string>& run :
       {std::vector<std::string>{"generate", "--prompt", "a"},
        std::vector<std::string>{"score", "--input", "-"},
        std::vector<std::string>{"tokenize", "--input", "-"}, std::vector<std::string>{"bench"}}) {
    std::vector<std::string> words = run;
    words.insert(words.end(), {"--model", shape});
    check_refused(hydrant_run(words), 2, shape + ": a description without weights");
  }
  check_refused(hydrant_run({"inspect", t.work.write("run.json", "{\"seed\": 1}")}), 2,
                "run.json: key model_type is missing");
  check_refused(hydrant_run({"inspect", t.work.write("x.json", R"({"model_type": "abacus"})")}), 2,
                "x.json: unknown architecture 'abacus'");
  Json config = Json::parse(read_text(shape));
  config["torch_dtype"] = "int8";
  check_refused(hydrant_run({"inspect", t.work.write("y.json", config.dump())}), 2,
                "y.json: key torch_dtype is \"int8\", may be float32, float16 or bfloat16");
}

TEST_CASE("inspect joins the layers of a matrix, not matrices, and predicts below its bound") {
  const Outcome o =
      hydrant_run({"inspect", HYDRANT_TEST_DIR "/../configs/models/opt-6.7b.json", "--json"});
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  const Json doc = Json::parse(o.out);
  size_t found = 0;
  for (const Json& tensor : doc["tensors"])
    for (const char* matrix : {"layers.*.fc1.weight", "layers.*.fc2.weight"})
      if (tensor["name"].get<std::string>().ends_with(matrix)) found += tensor["count"] == 32;
  CHECK(found == 2);
  const Json& memory = doc["memory"];
  const auto bytes = [&](const Json& value) { return value.get<uint64_t>(); };
  CHECK(bytes(memory["predicted_peak_bytes"]) == bytes(memory["device"]["bytes"]) +
                                                     bytes(memory["host"]["bytes"]) +
                                                     bytes(memory["process_bytes"]));
  CHECK(bytes(memory["most_peak_bytes"]) ==
        bytes(memory["predicted_peak_bytes"]) + (uint64_t{64} << 20));
}
