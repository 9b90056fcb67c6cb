// How a run that is interrupted ends, and what may stand on standard error.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("Ctrl-C ends a run and keeps what is finished") {
  const Tiny t;
  const std::string out = t.work.file("out.jsonl");
  // Positions in the cache have no limit: the second row would run for hours.
  Process process({{"generate", "--model", t.model.path(), "--prompts", "-", "--output", out,
                    "--policy", "h2o", "--budget", "16", "--positions", "cache", "--ignore-eos"},
                   "{\"id\": \"short\", \"prompt\": \"a\", \"max_new_tokens\": 3}\n"
                   "{\"id\": \"long\", \"prompt\": \"b\", \"max_new_tokens\": 16000000}\n",
                   Stdout::captured,
                   {}});
  while (!std::filesystem::exists(out) || std::filesystem::file_size(out) == 0)
    std::this_thread::yield();
  process.interrupt();
  const Outcome o = process.wait();
  CHECK(o.code == 130);
  CHECK_THAT(o.err, Catch::Contains("interrupted; finished rows are kept, the same command with"));
  const auto rows = json_lines(read_text(out));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["id"] == "short");
}

TEST_CASE("Ctrl-C before a run has begun says so once") {
  const Tiny t;
  const std::string prompts = t.work.file("fifo");
  REQUIRE(::mkfifo(prompts.c_str(), 0600) == 0);
  for (const bool quiet : {false, true}) {
    Process process({{"generate", "--model", t.model.path(), "--prompts", prompts,
                      quiet ? "--quiet" : "--no-quiet"},
                     "",
                     Stdout::captured,
                     {}});
    const std::ofstream opened(prompts);  // waits for it to wait for its lines
    process.interrupt();
    const Outcome o = process.wait();
    CHECK(o.code == 130);
    CHECK(o.err == (quiet ? "" : "hydrant: interrupted\n"));
  }
}

TEST_CASE("what is written to standard error is UTF-8, whatever it quotes") {
  const Tiny t;
  const auto is_clean = [](const Outcome& o) {
    CHECK(o.code != 0);
    CHECK_THAT(o.err, Catch::Contains("\xEF\xBF\xBD") || Catch::Contains("\\ufffd"));
    CHECK_NOTHROW(Json(o.err).dump());  // refuses what is no UTF-8
    CHECK(o.err.find('\x1b') == std::string::npos);
  };
  const std::string bad = "\xff\x1b[\x80 \xf0\x9f";
  const Words run{"generate", "--model", t.model.path(), "--prompt", "a", "--max-new-tokens", "2"};
  is_clean(t.generate("{\"prompt\": \"a\"}\n{\"prompt\": " + bad + "}\n"));      // a warning
  is_clean(hydrant_run(run + Words{"--config", t.work.write("c", "{" + bad)}));  // errors
  is_clean(hydrant_run(run + Words{"--config", t.work.path() + "/" + bad}));
  is_clean(hydrant_run(run + Words{"--policy", bad}));
  is_clean(hydrant_run(run + Words{"--" + bad}));
  for (const char* file : {"tokenizer.json", "config.json"}) {
    CAPTURE(file);
    const std::string whole = read_text(t.model.file(file));
    t.model.write(file, "{\"a\": " + bad + "}");
    is_clean(hydrant_run(run));
    t.model.write(file, whole);
  }
  t.model.write("model.safetensors",
                std::string("\x20\0\0\0\0\0\0\0", 8) + "{\"" + bad + std::string(64, '\xfe'));
  is_clean(hydrant_run(run));
}
