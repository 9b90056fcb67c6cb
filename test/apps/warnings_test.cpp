// What is done otherwise than asked is said: once, in one line, with the numbers.
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

// The lines that warn.
std::vector<std::string> warnings(const Outcome& o) {
  std::vector<std::string> found;
  const std::string mark = "hydrant: warning: ";
  for (size_t at = 0; (at = o.err.find(mark, at)) != std::string::npos; at += mark.size())
    found.push_back(o.err.substr(at + mark.size(), o.err.find('\n', at) - at - mark.size()));
  return found;
}

void check_warned(const Outcome& o, const std::string& line) {
  CAPTURE(o.err, line);
  CHECK(o.code == 0);
  const auto found = warnings(o);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0], Catch::Contains(line));
}

}  // namespace

TEST_CASE("sizes that a flag's policy sets aside are warned of once, whatever the command") {
  const Tiny t;
  const std::string config =
      t.work.write("h2o.json", R"({"cache": {"policy": "h2o", "heavy": 4, "recent": 4}})");
  const std::string pairs = t.work.write("pairs", R"({"context": "a", "continuation": "b"})");
  for (const Words& command : {Words{"generate", "--prompt", "a", "--max-new-tokens", "2"},
                               Words{"score", "--input", pairs}, Words{"inspect"}}) {
    Words words = command;
    words.insert(words.end(), {"--model", t.model.path(), "--config", config, "--policy", "full"});
    check_warned(hydrant_run(words),
                 config + ": cache.heavy, cache.recent: no effect on the policy 'full'");
  }
}

TEST_CASE("a limit beyond the context is cut with a warning, and the row ends with length") {
  const Tiny t;
  const auto line = [](int id, int prompt, int asked) {
    return Json{{"id", id},
                {"prompt_token_ids", std::vector<int>(size_t(prompt), 5)},
                {"max_new_tokens", asked}}
               .dump() +
           "\n";
  };
  const int room = kTinyPositions - 20 + 1;
  const Outcome fits = t.generate(line(1, 20, room));
  CHECK(warnings(fits).empty());
  const Outcome one = t.generate(line(1, 20, room + 1) + line(2, 20, room));
  check_warned(one,
               "line 1: max_new_tokens 46 is cut to 45: the prompt has 20 of the model's 64 "
               "positions");
  const Json row = by_id(one.rows())["1"];
  CHECK(row["token_ids"].size() == size_t(room));
  CHECK(row["finish_reason"] == "length");
  check_warned(t.generate(line(1, 20, 60) + line(2, 60, 6) + line(3, 64, 2)),
               "positions; so are 2 more lines");
  check_warned(t.generate(line(1, 20, 60) + line(2, 60, 6)), "positions; so is 1 more line");
  CHECK(warnings(t.generate(line(1, 20, 90),
                            {"--policy", "local", "--recent", "8", "--positions", "cache"}))
            .empty());
}

TEST_CASE("a budget that leaves fewer sinks than usual is warned of") {
  const Tiny t;
  const std::string pairs = t.work.write(
      "pairs", R"({"context_token_ids": [5, 6, 7], "continuation_token_ids": [5, 6, 7, 8]})");
  const std::string text = t.work.write("text", std::string(80, 'q'));
  for (const Words& command :
       {Words{"generate", "--prompt", "abc", "--max-new-tokens", "4"},
        Words{"score", "--input", pairs}, Words{"score", "--perplexity", text}, Words{"inspect"},
        Words{"bench", "--prompt-len", "3,4", "--output-len", "4", "--repeats", "1"}}) {
    CAPTURE(command);
    const auto run = [&](const Words& more) {
      Words words = command;
      words.insert(words.end(), {"--model", t.model.path(), "--policy", "sinks"});
      words.insert(words.end(), more.begin(), more.end());
      return hydrant_run(words);
    };
    check_warned(run({"--budget", "3"}),
                 "a budget of 3 slots leaves the policy 'sinks' 2 for the first tokens, not 4");
    for (const Words& fine : {Words{"--budget", "5"}, Words{"--budget", "3", "--sinks", "2"},
                              Words{"--budget", "100%"}}) {
      const Outcome o = run(fine);
      CAPTURE(o.err);
      CHECK(o.code == 0);
      CHECK(warnings(o).empty());
    }
  }
}

TEST_CASE("ids of generation_config.json that the vocabulary does not have are left out") {
  const Tiny t;
  const Words run{"generate", "--model", t.model.path(), "--prompt", "a", "--max-new-tokens", "2"};
  t.model.write("generation_config.json", R"({"eos_token_id": [257, 258]})");
  check_warned(hydrant_run(run), t.model.path() +
                                     "/generation_config.json: eos_token_id 258 is not in the "
                                     "vocabulary of 258 and is left out");
  t.model.write("generation_config.json", R"({"bos_token_id": 300, "eos_token_id": 257})");
  check_warned(hydrant_run(run), "bos_token_id 300");
}

TEST_CASE("keys that a placement leaves idle are warned of in one line") {
  const Tiny t;
  const Words run{"generate", "--model", t.model.path(), "--prompt", "a", "--max-new-tokens", "2"};
  const auto with = [&](const Words& more) {
    Words words = run;
    words.insert(words.end(), more.begin(), more.end());
    return hydrant_run(words);
  };
  for (const Words& placed : {Words{}, Words{"--placement", "100,0,100,0,100,0"}}) {
    const auto with_placed = [&](Words more) {
      more.insert(more.end(), placed.begin(), placed.end());
      return with(more);
    };
    check_warned(with_placed({"--memory-folder", "/var/tmp", "--memory-disk", "1GB"}),
                 "--memory-disk, --memory-folder: no effect without a cache on disk");
    check_warned(with_placed({"--cache-compute", "host", "--cache-slots", "3"}),
                 "--cache-slots, --cache-compute: no effect with the cache on the device");
  }
  check_warned(hydrant_run({"tokenize", "--model", t.model.path(), "--input", "-"}),
               "standard input: no lines");
}

TEST_CASE("keys that a placement leaves idle once it is found are warned of by every command") {
  const Tiny t;
  const std::string pairs = t.work.write("pairs", R"({"context": "a", "continuation": "b"})");
  const std::string config =
      t.work.write("slots.json", R"({"prefetch": {"weight_slots": 4, "disk_lanes": 3}})");
  for (const Words& command :
       {Words{"generate", "--prompt", "a", "--max-new-tokens", "2"},
        Words{"score", "--input", pairs}, Words{"inspect", "--length", "8"},
        Words{"bench", "--prompt-len", "3", "--output-len", "4", "--repeats", "1"}})
    for (const Words& placed :
         {Words{}, Words{"--placement", "auto"}, Words{"--placement", "100,0,100,0,100,0"}}) {
      const Words run = command + Words{"--model", t.model.path()} + placed;
      CAPTURE(run);
      check_warned(hydrant_run(run + Words{"--memory-link", "3GB/s"}),
                   "--memory-link: no effect with everything on the device");
      check_warned(hydrant_run(run + Words{"--no-overlap"}),
                   "--overlap: no effect with everything on the device");
      check_warned(hydrant_run(run + Words{"--disk-lanes", "9"}),
                   "--disk-lanes: no effect with all weights on the device");
      check_warned(hydrant_run(run + Words{"--config", config}),
                   config + ": prefetch.weight_slots, prefetch.disk_lanes: no effect with all");
    }
  const Words bench{
      "bench",     "--model", t.model.path(), "--prompt-len",     "3", "--output-len", "4",
      "--repeats", "1",       "--placement",  "100,0,100,0,100,0"};
  const Words idle{"--memory-link", "3GB/s"};
  check_warned(hydrant_run(bench + Words{"--placement", "auto"} + idle),
               "--memory-link: no effect");
  // One that moves them is enough.
  const Outcome moves = hydrant_run(bench + Words{"--placement", "0,0,100,0,100,0"} + idle);
  CHECK(moves.code == 0);
  CHECK_THAT(moves.err, !Catch::Contains("--memory-link: "));
}

TEST_CASE("a folder for synthetic weights has a use only while some of them are there") {
  const Tiny t;
  const Words run{"bench",
                  "--synthetic",
                  t.model.file("config.json"),
                  "--prompt-len",
                  "3",
                  "--output-len",
                  "2",
                  "--repeats",
                  "1",
                  "--memory-folder",
                  "/var/tmp"};
  for (const Words& placed : {Words{}, Words{"--placement", "100,0,100,0,100,0"}})
    check_warned(hydrant_run(run + placed), "--memory-folder: no effect without a cache on disk");
  const Outcome written = hydrant_run(run + Words{"--placement", "50,0,100,0,100,0"});
  CHECK(written.code == 0);
  CHECK_THAT(written.err, !Catch::Contains("--memory-folder: no effect"));
}

TEST_CASE("a folder that is memory is warned of where something goes there, in one line") {
  struct statfs status {};
  if (::statfs("/dev/shm", &status) != 0 || status.f_type != TMPFS_MAGIC) {
    WARN("/dev/shm is no tmpfs here");
    return;
  }
  const Tiny t;
  const std::string pairs = t.work.write("pairs", R"({"context": "a", "continuation": "b"})");
  const Words folder{"--memory-folder", "/dev/shm"}, model{"--model", t.model.path()},
      cached{"--placement-cache", "0,0"};
  const std::string line = "--memory-folder: /dev/shm is in memory (tmpfs): the ";
  const Words bench{"bench", "--prompt-len", "3", "--output-len", "2", "--repeats", "1"};
  for (const Words& command :
       {Words{"generate", "--prompt", "a", "--max-new-tokens", "2"} + model,
        Words{"score", "--input", pairs} + model, Words{"inspect", t.model.path()}, bench + model})
    CHECK_THAT(hydrant_run(command + cached + folder).err,
               Catch::Contains(line) &&
                   Catch::Contains(" that go there are memory which memory.host does not"));
  const Words made = bench + Words{"--synthetic", t.model.file("config.json")} + folder;
  const auto count = [&](const Outcome& o) {
    CHECK(o.code == 0);
    const auto all = warnings(o);
    return std::count_if(all.begin(), all.end(),
                         [&](const std::string& w) { return w.starts_with(line); });
  };
  // Once, whatever the number of placements that use it.
  CHECK(count(hydrant_run(made + Words{"--placement", "0,0,100,0,100,0", "--placement",
                                       "50,0,100,0,100,0"})) == 1);
  CHECK(count(hydrant_run(made + Words{"--placement", "100,0,100,0,100,0"})) == 0);
  const Words run = Words{"generate", "--prompt", "a", "--max-new-tokens", "2"} + model;
  CHECK(count(hydrant_run(run + folder)) == 0);
}

TEST_CASE("groups that no row is left for are warned of") {
  const Tiny t;
  const std::string pairs = t.work.write("pairs", R"({"context": "a", "continuation": "b"})");
  const Words groups{"--groups", "3"};
  check_warned(hydrant_run(Words{"generate", "--model", t.model.path(), "--prompt", "a",
                                 "--max-new-tokens", "2"} +
                           groups),
               "--groups: 1 of 3 groups are used: 1 row, ");
  check_warned(hydrant_run(Words{"score", "--model", t.model.path(), "--input", pairs} + groups),
               "--groups: 1 of 3 groups are used: 1 row, ");
  const std::string three = "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n{\"prompt\": \"c\"}\n";
  check_warned(t.generate(three, groups + Words{"--rows-per-group", "2"}),
               "--groups: 2 of 3 groups are used: 3 rows, 2 in a group");
  CHECK(warnings(t.generate(three, groups + Words{"--rows-per-group", "1"})).empty());
  const Words bench{"bench",
                    "--model",
                    t.model.path(),
                    "--prompt-len",
                    "3",
                    "--output-len",
                    "4",
                    "--repeats",
                    "1",
                    "--groups",
                    "3"};
  check_warned(hydrant_run(bench + Words{"--batch", "4,2"}),
               "--groups: a batch of 2 cannot be 3 groups; it is 2");
  CHECK(warnings(hydrant_run(bench + Words{"--batch", "4,3"})).empty());
}

TEST_CASE("sizes that no policy of a bench has a use for are warned of") {
  const Tiny t;
  const auto bench = [&](const Words& more) {
    return hydrant_run(Words{"bench", "--model", t.model.path(), "--prompt-len", "6",
                             "--output-len", "4", "--repeats", "1"} +
                       more);
  };
  check_warned(bench({"--policy", "full", "--budget", "80%"}),
               "--budget has no effect on the policy 'full'");
  check_warned(bench({"--policy", "full,local", "--budget", "80%", "--sinks", "4"}),
               "--sinks has no effect on policies without sinks");
  CHECK(warnings(bench({"--policy", "full,sinks", "--budget", "80%", "--sinks", "4"})).empty());
}
