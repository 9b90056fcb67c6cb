// --overwrite, and bench's files: what they replace, and what they leave alone.
#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

// Each way to write rows, but for --output.
std::vector<Words> jobs(const Tiny& t) {
  const std::string model = t.model.path();
  return {{"generate", "--model", model, "--max-new-tokens", "2", "--prompt", "a"},
          {"generate", "--model", model, "--max-new-tokens", "2", "--prompts",
           t.work.write("prompts", "{\"prompt\": \"a\"}\n")},
          {"generate", "--model", model, "--prompts", t.work.write("wrong", "{\"promt\": 1}\n")},
          {"score", "--model", model, "--input",
           t.work.write("pairs", R"({"context": "a", "continuation": "b"})")},
          {"score", "--model", model, "--perplexity", t.work.write("text", "some text")},
          {"tokenize", "--model", model, "--input", t.work.write("texts", R"({"text": "a"})")}};
}

Outcome run(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return hydrant_run(words);
}

Words bench(const Tiny& t) {
  return {"bench",
          "--model",
          t.model.path(),
          "--prompt-len",
          "4",
          "--output-len",
          "2",
          "--warmup",
          "0",
          "--repeats",
          "1",
          "--policy",
          "full",
          "--quiet",
          "--no-agreement"};
}

}  // namespace

TEST_CASE("results are replaced, whichever command wrote them, and so is an empty file") {
  const Tiny t;
  const std::string out = t.work.write("out.jsonl", "");
  std::string before;
  for (const Words& job : jobs(t)) {
    CAPTURE(job);
    const Outcome o = run(job, {"--output", out, "--overwrite"});
    CAPTURE(o.err);
    CHECK((o.code == 0 || job[4] == t.work.file("wrong")));
    CHECK_THAT(o.err, !Catch::Contains("not replaced"));
    CHECK(read_text(out) != before);
    before = read_text(out);
    CHECK_THAT(run(job, {"--output", out, "--overwrite"}).err, !Catch::Contains("not replaced"));
    CHECK(json_lines(read_text(out)).size() == 1);
  }
  const std::string json = t.work.write("b.json", ""), csv = t.work.file("b.csv");
  for (int i = 0; i < 3; i++) CHECK(run(bench(t), {"--json", json, "--csv", csv}).code == 0);
  CHECK(Json::parse(read_text(json))["rows"].size() == 1);
}

TEST_CASE("what hydrant has not written is not replaced") {
  const Tiny t;
  const std::string weights = read_text(t.model.file("model.safetensors"));
  for (const std::string& text :
       Words{read_text(t.model.file("config.json")), weights, "\n", "notes\n", "{\n", "[1]\n",
             "{\"id\": 1, \"prompt\": \"a\"}\n", "{\"id\": 1}\n", "{}\n", "null\n",
             "{\"id\": 1, \"token_ids\": [1]}\n", "{\"id\": 1, \"error\": \"no\"}\n",
             "{\"id\": 1, \"token_ids\": [1], \"config\": 3}\n",
             "{\"id\": 1, \"token_ids\": [1], \"config\": {}, \"lo", std::string(1000, '\0'),
             "policy,price\n", "{\"version\": 1, \"rows\": []}\n"}) {
    const std::string file = t.work.write("file", text);
    CAPTURE(text.substr(0, 60));
    for (const Words& job : jobs(t)) {
      check_refused(run(job, {"--output", file, "--overwrite"}), 2,
                    "--overwrite: " + file +
                        " is not replaced: it is not results of hydrant, it begins with \"");
      CHECK(read_text(file) == text);
    }
    for (const char* flag : {"--json", "--csv"}) {
      check_refused(run(bench(t), {flag, file}), 2,
                    std::string(flag) + ": " + file + " is not replaced: it is not a ");
      CHECK(read_text(file) == text);
    }
  }
}

TEST_CASE("results of one kind are not replaced by those of another") {
  const Tiny t;
  const std::string json = t.work.file("b.json"), csv = t.work.file("b.csv"),
                    rows = t.work.file("rows");
  REQUIRE(run(bench(t), {"--json", json, "--csv", csv}).code == 0);
  REQUIRE(run(jobs(t)[0], {"--output", rows}).code == 0);
  for (const std::string& file : {json, csv})
    check_refused(run(jobs(t)[0], {"--output", file, "--overwrite"}), 2, "not results of hydrant");
  for (const std::string& file : {rows, csv})
    check_refused(run(bench(t), {"--json", file}), 2, "not a document of results");
  for (const std::string& file : {rows, json})
    check_refused(run(bench(t), {"--csv", file}), 2, "not a table of results");
  check_refused(run(bench(t), {"--json", json, "--csv", t.work.path() + "/./b.json"}), 2,
                "b.json is also what --json names");
}

TEST_CASE("nothing in the model's folder is replaced, by whatever name it is called") {
  const Tiny t;
  const std::string rows = t.work.file("rows");
  REQUIRE(run(jobs(t)[0], {"--output", rows}).code == 0);
  const std::string in_model = t.model.write("rows.jsonl", read_text(rows)),
                    empty = t.model.write("empty", ""), link = t.work.file("link"),
                    link_in_model = t.model.file("link");
  std::filesystem::create_symlink(in_model, link);
  std::filesystem::create_symlink(rows, link_in_model);
  for (const std::string& file :
       {in_model, empty, link, link_in_model, t.model.path() + "/./rows.jsonl",
        t.model.file("config.json"), t.model.file("model.safetensors")}) {
    CAPTURE(file);
    const std::string text = read_text(file);
    for (const Words& job : jobs(t))
      check_refused(run(job, {"--output", file, "--overwrite"}), 2,
                    file + " is not replaced: it lies in the model's folder");
    check_refused(run(bench(t), {"--json", file}), 2, "it lies in the model's folder");
    CHECK(read_text(file) == text);
  }
}

TEST_CASE("an output is none of the other files that a command reads") {
  const Tiny t;
  const std::string config = t.work.write("run.json", R"({"max_new_tokens": 2})"),
                    text = t.work.write("text", std::string(200, 'q'));
  for (const Words& job : jobs(t))
    check_refused(run(job, {"--config", config, "--output", config, "--overwrite"}), 2,
                  "--output: " + config + " is also what --config names");
  check_refused(run(bench(t), {"--text", text, "--csv", text}), 2,
                "--csv: " + text + " is also what --text names");
}

TEST_CASE(
    "bench keeps its files when standard output fails, and shows its table when a file does") {
  const Tiny t;
  const std::string json = t.work.write("b.json", ""), csv = t.work.file("b.csv");
  std::filesystem::permissions(json, std::filesystem::perms(0600));
  Words words = bench(t);
  words.insert(words.end(), {"--json", json, "--csv", csv});
  check_refused(hydrant_run(words, "", Stdout::full), 4, "standard output: cannot write");
  CHECK(Json::parse(read_text(json))["rows"].size() == 1);
  CHECK_THAT(read_text(csv), Catch::StartsWith("policy,budget,"));
  CHECK(std::filesystem::status(json).permissions() == std::filesystem::perms(0600));
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(t.work.path()))
    files++;
  CHECK(files == 2);  // nothing is left beside them

  const Outcome o = run(bench(t), {"--json", "/dev/full"});
  check_refused(o, 4, "/dev/full: cannot write");
  CHECK_THAT(o.out, Catch::Contains("decode [min, max]"));
}
