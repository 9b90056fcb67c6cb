// validate refuses what generate would refuse before it reads a weight, in the same words.
#include <catch2/catch.hpp>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("validate refuses what generate refuses, in the same words") {
  const Tiny t;
  const std::string lines = t.work.write("in.jsonl", "{\"prompt\": \"a\"}\n"),
                    notes = t.work.write("notes", "notes\n"),
                    shape = t.work.write("shape.json", read_text(t.model.file("config.json"))),
                    odd = t.work.write("odd.json", R"({"model_type": "abacus"})");
  const auto file = [&](const Json& keys) {
    Json document{{"model", t.model.path()}, {"max_new_tokens", 2}};
    if (!keys.contains("prompt")) document["prompts"] = lines;
    document.update(keys);
    return t.work.write("run.json", document.dump());
  };
  const std::vector<Json> wrong{
      {{"prompt", "a"}, {"prompts", lines}},
      {{"prompt", "a"}, {"resume", true}},
      {{"resume", true}, {"overwrite", true}, {"output", notes}},
      {{"output", lines}},
      {{"output", lines}, {"overwrite", true}},
      {{"output", notes}},
      {{"output", notes}, {"overwrite", true}},
      {{"output", t.model.file("config.json")}, {"overwrite", true}},
      {{"output", t.work.file("run.json")}, {"overwrite", true}},
      {{"model", shape}},
      {{"model", t.work.path()}},
      {{"prompt", std::string(80, 'q')}},
      {{"stop_ids", {999}}},
      {{"chat", true}},
      {{"device", "abacus"}},
      {{"cache", {{"policy", "h2o"}, {"layer_budgets", {4, 4, 4}}}}},
      {{"cache", {{"policy", "h2o"}, {"budget", 4}, {"layer_budgets", {4, 4}}}}},
      {{"cache", {{"policy", "h2o"}}}},
      {{"cache", {{"policy", "full"}, {"budget", 4}}}},
      {{"cache", {{"recnt", 4}}}},
      {{"seed", -1}},
      {{"prompt", "a"}, {"memory", {{"device", "1KB"}}}},
  };
  for (const Json& keys : wrong) {
    CAPTURE(keys.dump());
    const std::string path = file(keys);
    const Outcome run = hydrant_run({"generate", "--config", path}),
                  checked = hydrant_run({"validate", path});
    const int code = keys.contains("memory") ? 3 : 2;
    check_refused(run, code, "");
    check_refused(checked, code, "");
    CHECK(checked.err == run.err);
    CHECK(checked.out.empty());
  }
  for (const Json& keys : std::vector<Json>{Json::object(),
                                            {{"prompt", "a"}},
                                            {{"output", t.work.file("new")}},
                                            {{"cache", {{"policy", "h2o"}, {"budget", "20%"}}}}}) {
    CAPTURE(keys.dump());
    const std::string path = file(keys);
    CHECK(hydrant_run({"validate", path}).code == 0);
    CHECK(hydrant_run({"generate", "--config", path}).code == 0);
  }
}

TEST_CASE("validate refuses two inputs of score, and does without what may be a flag") {
  const Tiny t;
  const auto validate = [&](const Json& keys) {
    return hydrant_run({"validate", t.work.write("run.json", keys.dump())});
  };
  check_refused(validate({{"input", "a"}, {"perplexity", "b"}}), 2, "cannot stand beside");
  check_refused(validate({{"resume", true}, {"perplexity", "b"}}), 2, "cannot stand beside");
  CHECK(validate(Json::object()).code == 0);
  CHECK(validate({{"resume", true}}).code == 0);
  const Outcome elsewhere = validate({{"model", "/no/such/model"}, {"stop_ids", {999}}});
  CHECK(elsewhere.code == 0);
  CHECK_THAT(elsewhere.err,
             Catch::Contains("run.json: model: /no/such/model is not here; what depends on it"));
}

TEST_CASE("validate warns of what only this machine refuses") {
  const Tiny t;
  const auto warned = [&](Json keys, const std::string& says) {
    CAPTURE(keys.dump());
    const Outcome o = hydrant_run({"validate", t.work.write("run.json", keys.dump())});
    CHECK(o.code == 0);
    CHECK_THAT(o.err, Catch::Contains("on this machine a run would be refused: ") &&
                          Catch::Contains(says));
  };
  warned({{"output", "/no/such/folder/x"}}, "run.json: output: cannot write /no/such/folder/x");
  warned({{"output", t.work.path()}}, "is a folder");
  warned({{"bench", {{"json", t.work.path()}}}}, "bench.json: ");
  warned({{"model", t.model.path()},
          {"placement", {0, 0, 0, 0, 100, 0}},
          {"memory", {{"folder", "/no"}}}},
         "memory.folder: /no: ");
  const Json lean{{"model", t.model.path()}, {"memory", {{"device", "1KB"}}}};
  check_refused(hydrant_run({"validate", t.work.write("run.json", lean.dump())}), 3,
                "for one row of one token");
}
