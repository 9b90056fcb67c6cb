// A limit on the size of files (ulimit -f) is a write error in words, whatever file meets it.
#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

Outcome run(const Words& words, uint64_t file_size, const std::string& input = "") {
  Start start;
  start.arguments = words;
  start.input = input;
  start.file_size = file_size;
  return Process(start).wait();
}

size_t files_in(const std::string& folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("file limits: results, trace, cache and profile") {
  const Tiny t;
  const Words generate{"generate", "--model",      t.model.path(), "--prompt",
                       "a b",      "--ignore-eos", "--quiet"};  // whose words are a file here
  const auto with = [&](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::string out = t.work.path() + "/out", folder = t.work.path() + "/spill";
  std::filesystem::create_directory(folder);

  check_refused(
      run(with(generate, {"--max-new-tokens", "6", "--output", out, "--logprobs", "20"}), 600), 4,
      "File too large");
  std::filesystem::remove(out);
  check_refused(run(with(generate, {"--max-new-tokens", "6", "--trace", out}), 600), 4,
                "File too large");
  CHECK(files_in(t.work.path()) == 1);  // the folder: no part of the trace is left
  check_refused(run(with(generate, {"--max-new-tokens", "6", "--placement-cache", "0,0",
                                    "--memory-folder", folder}),
                    1000),
                4, "File too large");
  check_refused(run({"profile", "--folder", folder, "--output", out}, 1000), 4, "File too large");
  CHECK(files_in(folder) == 0);
}

TEST_CASE("file limits: a run that fails before its first row leaves earlier results as they are") {
  const Tiny t;
  const std::string out = t.work.file("out.jsonl"), lines = "{\"prompt\": \"a b\"}\n";
  REQUIRE(t.generate(lines, {"--output", out}).code == 0);
  const std::string before = read_text(out);
  const Words again{"generate",
                    "--model",
                    t.model.path(),
                    "--prompts",
                    t.work.write("p.jsonl", lines),
                    "--output",
                    out,
                    "--overwrite",
                    "--quiet",
                    "--placement-cache",
                    "0,0",
                    "--memory-folder",
                    t.work.path()};
  const size_t files = files_in(t.work.path());
  check_refused(run(again, 1000), 4, "File too large");  // the cache's file
  CHECK(read_text(out) == before);
  const Outcome o = run(again, 0);
  CAPTURE(o.err);
  CHECK(o.code == 0);
  CHECK(files_in(t.work.path()) == files);
  CHECK(read_text(out).find('\n') == read_text(out).size() - 1);  // one row, not two
}
