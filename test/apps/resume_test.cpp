// An output that is there already: never emptied unasked, and gone on with row by row.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

const std::string kLines =
    "{\"id\": \"a\", \"prompt\": \"one\"}\n"
    "{\"prompt\": \"two\", \"max_new_tokens\": 3}\n"
    "{\"id\": \"bad\", \"prompt_token_ids\": [999]}\n"
    "{\"id\": 4, \"prompt\": \"three\"}\n"
    "{\"id\": \"e\", \"prompt\": \"four\"}\n";
const Words kHot{"--temperature", "1.5", "--seed", "3"};

std::string write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace

TEST_CASE("an output that another process is writing is left alone") {
  const Tiny t;
  const std::string prompts = t.work.write("prompts", "{\"prompt\": \"a\"}"),
                    before = "{\"id\": 1, \"line\": 1, \"error\": \"none\"}\n",
                    out = write(t.work.file("out.jsonl"), before);
  const int other = ::open(out.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  const Words words{"generate", "--prompts", prompts, "--model", t.model.path(), "--output", out};
  for (const char* how : {"--overwrite", "--resume"}) {
    CAPTURE(how);
    check_refused(hydrant_run(words + Words{how}), 4, out + ": another process is writing it");
    CHECK(read_text(out) == before);
  }
  ::close(other);
  CHECK(hydrant_run(words + Words{"--resume"}).code == 0);
  CHECK(hydrant_run(words + Words{"--overwrite"}).code == 0);
}

TEST_CASE("an output with something in it is replaced only when asked for") {
  const Tiny t;
  const std::string prompts = t.work.write("prompts", "{\"prompt\": \"a\"}"),
                    texts = t.work.write("texts", "{\"text\": \"a\"}"),
                    pairs = t.work.write("pairs", "{\"context\": \"a\", \"continuation\": \"b\"}");
  struct Run {
    Words words;
    bool resumes;
  };
  for (const Run& run : std::vector<Run>{
           {{"generate", "--prompts", prompts}, true},
           {{"score", "--input", pairs}, true},
           {{"generate", "--prompt", "a"}, false},
           {{"score", "--perplexity", pairs}, false},
           {{"tokenize", "--input", texts}, false},
       }) {
    CAPTURE(run.words[0], run.words[1]);
    const std::string out = t.work.file("out.jsonl"),
                      before = "{\"id\": 1, \"line\": 1, \"error\": \"none\"}\nhours of work";
    const Words words = run.words + Words{"--model", t.model.path(), "--output", out};

    write(out, before);
    const Outcome refused = hydrant_run(words);
    check_refused(refused, 2, "--output: " + out + " is there and not empty");
    CHECK_THAT(refused.err, Catch::Contains("--overwrite"));
    CHECK((refused.err.find("--resume") != std::string::npos) == run.resumes);
    CHECK(read_text(out) == before);
    if (run.words[0] == "tokenize") {  // a key of other commands has no effect
      const std::string key = t.work.write("resume.json", R"({"resume": true})");
      check_refused(hydrant_run(words + Words{"--config", key}), 2, "is there and not empty");
      CHECK(read_text(out) == before);
    }

    CHECK(hydrant_run(words + Words{"--overwrite"}).code == 0);
    CHECK(json_lines(read_text(out)).size() == 1);
    write(out, "");
    CHECK(hydrant_run(words).code == 0);
    CHECK(json_lines(read_text(out)).size() == 1);
  }
}

TEST_CASE("a job resumed wherever it was cut has the rows of one that was not") {
  const Tiny t;
  const std::string whole = t.work.file("whole.jsonl"), out = t.work.file("out.jsonl");
  const std::string key = t.work.write("resume.json", R"({"resume": true})");
  CHECK(t.generate(kLines, kHot + Words{"--output", whole}).code == 1);
  const std::string text = read_text(whole);
  const auto rows = json_lines(text);
  REQUIRE(rows.size() == 5);
  const size_t first = text.find('\n') + 1, second = text.find('\n', first) + 1;
  for (const size_t cut :
       {size_t{0}, size_t{1}, first - 1, first, second - 2, second, text.size() - 1, text.size()}) {
    CAPTURE(cut, text.size());
    write(out, text.substr(0, cut));
    const Outcome o = t.generate(kLines, kHot + Words{"--config", key, "--output", out,
                                                      "--rows-per-group", "1", "--threads", "1"});
    CHECK(o.code == 1);
    auto resumed = by_id(json_lines(read_text(out)));
    CHECK(resumed.size() == rows.size());
    for (Json row : rows) {
      Json other = resumed[row["id"].dump()];
      for (Json* r : {&row, &other})
        if (r->contains("config"))
          for (const char* same : {"output", "batch", "threads"}) (*r)["config"].erase(same);
      CHECK(row == other);
    }
  }
  std::filesystem::remove(out);  // a job that never began
  CHECK(t.generate(kLines, kHot + Words{"--resume", "--output", out}).code == 1);
  CHECK(json_lines(read_text(out)).size() == 5);
}

TEST_CASE("a last line that is damaged is redone, whether it has an end or not") {
  const Tiny t;
  const std::string out = t.work.file("out.jsonl");
  CHECK(t.generate(kLines, {"--output", out}).code == 1);
  const std::string text = read_text(out);
  const size_t last = text.rfind('\n', text.size() - 2) + 1;
  for (const char* end : {"", "\n"}) {
    write(out, text.substr(0, last + 12) + end);
    std::filesystem::permissions(out, std::filesystem::perms(0600));
    const std::string link = t.work.file("link");
    std::filesystem::remove(link);
    std::filesystem::create_symlink(out, link);
    CHECK(t.generate(kLines, {"--output", link, "--resume"}).code == 1);
    CHECK(json_lines(read_text(out)).size() == 5);
    CHECK(std::filesystem::is_symlink(link));
    CHECK(std::filesystem::status(out).permissions() == std::filesystem::perms(0600));
  }
}

TEST_CASE("rows that failed are tried again, finished ones stay as they are") {
  const Tiny t;
  const std::string out = t.work.file("out.jsonl");
  CHECK(t.generate(kLines, {"--output", out}).code == 1);
  std::string mended = kLines;
  mended.replace(mended.find("999"), 3, "99");
  const Outcome o = t.generate(mended, {"--output", out, "--resume"});
  CHECK(o.code == 0);
  CHECK_THAT(o.err, Catch::Contains("4 of 5 rows are in " + out));
  CHECK_THAT(o.err, Catch::Contains("1 prompt + 6 generated tokens"));
  auto rows = by_id(json_lines(read_text(out)));
  CHECK(rows.size() == 5);
  CHECK(rows[R"("bad")"]["token_ids"].size() == 6);

  const std::string done = read_text(out);
  CHECK(t.generate(mended, {"--output", out, "--resume"}).code == 0);
  CHECK(read_text(out) == done);
  const Outcome other =
      t.generate("{\"id\": \"new\", \"prompt\": \"x\"}", {"--output", out, "--resume"});
  CHECK(other.code == 0);
  CHECK_THAT(other.err, Catch::Contains("not in the input: 5"));
  CHECK_THAT(read_text(out), Catch::StartsWith(done));
}

TEST_CASE("score is resumed as generate is") {
  const Tiny t;
  const std::string out = t.work.file("out.jsonl"),
                    pairs = t.work.write(
                        "pairs",
                        "{\"id\": \"a\", \"context\": \"a\", \"continuation\": \"bc\"}\n"
                        "{\"id\": \"b\", \"context\": \"x\", \"continuation\": \"y\"}\n");
  const Words run{"score", "--model", t.model.path(), "--input", pairs, "--output", out};
  CHECK(hydrant_run(run).code == 0);
  const std::string text = read_text(out);
  write(out, text.substr(0, text.size() - 5));
  CHECK(hydrant_run(run + Words{"--resume"}).code == 0);
  CHECK(by_id(json_lines(read_text(out))) == by_id(json_lines(text)));
  check_refused(hydrant_run(run + Words{"--resume", "--policy", "local", "--recent", "4"}), 2,
                "cache.policy \"full\", now it is \"local\"");
}

TEST_CASE("what was made with other settings is not gone on with") {
  const Tiny t;
  const std::string out = t.work.file("out.jsonl");
  CHECK(t.generate(kLines, kHot + Words{"--output", out}).code == 1);
  const std::string before = read_text(out);
  struct Change {
    Words flags;
    const char* says;
  };
  for (const Change& change : std::vector<Change>{
           {{"--temperature", "1.25", "--seed", "3"}, "sampling.temperature 1.5, now it is 1.25"},
           {{"--temperature", "1.5", "--seed", "4"}, "seed 3, now it is 4"},
           {kHot + Words{"--top-k", "5"}, "sampling.top_k 0, now it is 5"},
           {kHot + Words{"--stop", "x"}, "stop [], now it is [\"x\"]"},
           {kHot + Words{"--compute-dtype", "f32"}, "compute.dtype \"auto\", now it is \"f32\""},
           {kHot + Words{"--policy", "h2o", "--budget", "8"},
            "cache.policy \"full\", now it is \"h2o\""},
           {kHot + Words{"--report-kept"}, "report_kept false, now it is true"},
           {kHot + Words{"--isa", "generic"}, "isa none, now it is \"generic\""},
       }) {
    check_refused(t.generate(kLines, change.flags + Words{"--output", out, "--resume"}), 2,
                  change.says);
    CHECK(read_text(out) == before);
  }
  std::string longer = kLines;
  longer.replace(longer.find("one"), 3, "once");
  check_refused(t.generate(longer, kHot + Words{"--output", out, "--resume"}), 2,
                "id \"a\" has 4 prompt_tokens, in the input it has 5");
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"notes\n", "line 1: not valid JSON"},
           {"notes", "line 1: not valid JSON"},
           {"{\"id\": 1, \"to\n" + before, "line 1: not valid JSON"},
           {"{\"id\": 1, \"to\n" + before, "if the line is a damaged row, remove it"},
           {"{\"text\": 1}\n", "line 1 is no row of results"},
           {"{\"id\": 1}\n", "line 1 has no configuration"}}) {
    write(out, text);
    check_refused(t.generate(kLines, kHot + Words{"--output", out, "--resume"}), 2, says);
    CHECK(read_text(out) == text);
  }
}

TEST_CASE("resuming needs an output and rows") {
  const Tiny t;
  check_refused(t.generate(kLines, {"--resume"}), 2, "--resume: needs --output");
  check_refused(t.generate(kLines, {"--resume", "--overwrite", "--output", "x"}), 2,
                "--resume: cannot stand beside --overwrite");
  check_refused(hydrant_run({"generate", "--model", "x", "--prompt", "a", "--resume"}), 2,
                "--resume: cannot stand beside --prompt");
  check_refused(hydrant_run({"score", "--model", "x", "--perplexity", "a", "--resume"}), 2,
                "--resume: cannot stand beside --perplexity");
  CHECK_THAT(t.generate(kLines, {"--overwrite"}).err,
             Catch::Contains("--overwrite has no effect without --output"));
}
