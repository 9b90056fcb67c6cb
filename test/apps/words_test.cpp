// Wrong words on the command line: what is said about them.
#include <catch2/catch.hpp>
#include <regex>
#include <set>

#include "runtime/apps/config_keys.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("typing mistakes are refused with the nearest word") {
  const Tiny t;
  check_refused(hydrant_run({}), 2, "a command is needed");
  check_refused(hydrant_run({"genrate"}), 2, "did you mean 'generate'");
  check_refused(hydrant_run({"generate", "--modle", "x"}), 2, "did you mean '--model'");
  check_refused(hydrant_run({"generate", "--model"}), 2, "--model: its value is missing");
  check_refused(hydrant_run({"generate", "--model=", "--prompt", "a"}), 2, "--model: must be");
  check_refused(hydrant_run({"generate", "--quiet="}), 2, "unknown argument");
  check_refused(hydrant_run({""}), 2, "unknown argument");
  check_refused(hydrant_run({"generate", "--model", "x"}), 2, "--prompt");
  check_refused(hydrant_run({"generate", "--prompt", "x"}), 2, "--model");
  check_refused(hydrant_run({"generate", "--model", "x", "--prompt", "a", "--prompts", "b"}), 2,
                "--prompt: cannot stand beside --prompts");
  check_refused(hydrant_run({"generate", "--model", "x", "--prompt", "a", "--heavy", "-3"}), 2,
                "--heavy: must be");
  check_refused(hydrant_run({"generate", "--model", "x", "--prompt", "a", "extra"}), 2, "extra");
  check_refused(hydrant_run({"score", "--model", "x"}), 2, "--perplexity");
  check_refused(hydrant_run({"inspect", t.model.path(), "--length", "9000"}), 2,
                "--length: must be 2 to 65 for the model's 64 positions, not 9000");
  check_refused(hydrant_run({"inspect", t.model.path(), "--prompt-len", "70"}), 2,
                "--prompt-len: must be 1 to 63, to leave one of 64 tokens to generate, not 70");
  check_refused(hydrant_run({"bench", "--model", "x", "--batch", "1,x"}), 2, "--batch: must be");
}

TEST_CASE("mistakes with the cache's sizes are told in the words of the command line") {
  struct Case {
    std::vector<std::string> flags;
    const char* says;
  };
  for (const Case& c : std::vector<Case>{
           {{"--policy", "h2o"},
            "--budget: missing; the policy 'h2o' needs it (1 to 1073741824 slots, or a share), or "
            "heavy and recent"},
           {{"--policy", "h2o", "--heavy", "3"},
            "--budget: missing; the policy 'h2o' needs it (3 to 1073741824 slots, or a share), or "
            "recent"},
           {{"--policy", "local"},
            "--budget: missing; the policy 'local' needs it (1 to 1073741824 slots, or a share), "
            "or recent"},
           {{"--budget", "20%"},
            "keeps everything, it has none; --policy was not given, it may be one of full, local"},
           {{"--recent", "20"}, "--policy was not given"},
           {{"--policy", "h2o", "--heavy", "0", "--recent", "0"}, "--recent: "},
           {{"--policy", "h2o", "--budget", "3", "--sinks", "8"},
            "--budget: 3 slots cannot hold the 8 of the regions that are given; it must be 8 to "},
       })
    for (const char* command : {"generate", "score", "inspect"}) {
      CAPTURE(command, c.flags);
      std::vector<std::string> words{command, "--model", "/nowhere"};
      if (words[0] == "generate") words.insert(words.end(), {"--prompt", "a"});
      if (words[0] == "score") words.insert(words.end(), {"--input", "-"});
      words.insert(words.end(), c.flags.begin(), c.flags.end());
      check_refused(hydrant_run(words), 2, c.says);
    }
  const Tiny t;
  check_refused(
      hydrant_run({"bench", "--model", t.model.path(), "--prompt-len", "4", "--output-len", "4",
                   "--policy", "h2o", "--budget", "3", "--sinks", "8"}),
      2, "--budget: 3 slots cannot hold the 8");
}

TEST_CASE("what may be given once is refused when given twice") {
  const std::vector<std::vector<std::string>> twice{
      {"--heavy", "3", "--heavy", "4"},
      {"--model", "a", "--model", "a"},
      {"--chat", "--no-chat"},
      {"--config", "a", "--config", "b"},
      {"--stop-ids", "1", "--stop-ids", "2"},
  };
  for (const auto& flags : twice) {
    CAPTURE(flags);
    std::vector<std::string> words{"generate", "--prompt", "a"};
    words.insert(words.end(), flags.begin(), flags.end());
    check_refused(hydrant_run(words), 2, flags[0] + ": given more than once");
  }
  check_refused(hydrant_run({"inspect", "a", "--model", "b"}), 2, "MODEL: given more than once");
  const Tiny t;
  const std::string line = R"({"prompt": "a"})";
  CHECK(t.generate(line, {"--stop", "a,b", "--stop", "c"}).code == 0);  // a list of texts
  check_refused(t.generate(line, {"--stop", "a", "b"}), 2, "b: unknown argument");
}

TEST_CASE("an empty entry of a list is shown in its list") {
  check_refused(
      hydrant_run({"generate", "--model", "x", "--prompt", "a", "--stop-ids", "1,"}), 2,
      "--stop-ids: must be a list of integers from 0 to 2147483647, not \"\" in [1,\"\"]");
  check_refused(hydrant_run({"bench", "--model", "x", "--budget", "20%,"}), 2,
                "not \"\" in [\"20%\",\"\"]");
}

TEST_CASE("a command has no flag that does nothing there, and says which commands have it") {
  for (const Command command : {Command::generate, Command::score, Command::tokenize,
                                Command::inspect, Command::bench, Command::validate})
    for (const Key& key : config_keys()) {
      bool has = false;  // another key may share the flag
      for (const Key& other : config_keys())
        has = has || (other.flag == key.flag && other.commands.has(command));
      if (has) continue;
      const std::string word(name(command));
      CAPTURE(word, key.flag);
      const Outcome o = hydrant_run({word, key.flag + "=1"});
      check_refused(o, 2, key.flag + ": no flag of " + word + ", only of ");
    }
  check_refused(hydrant_run({"score", "--seed", "1"}), 2, "only of generate");
  check_refused(hydrant_run({"tokenize", "--threads", "1"}), 2,
                "only of generate, score, inspect, bench");
  const Tiny t;  // what the environment says to those that compute is nothing to the others
  CHECK(Process({{"tokenize", "--model", t.model.path(), "--input", "-"},
                 "{\"text\": \"a\"}",
                 Stdout::captured,
                 {"HYDRANT_ISA=generic"}})
            .wait()
            .err.empty());
}

TEST_CASE("every flag that help lists is a key of a configuration") {
  std::set<std::string> flags{"--help", "--config", "--version"};
  for (const Key& key : config_keys()) flags.insert(key.flag);
  for (const char* command : {"generate", "score", "tokenize", "inspect", "bench", "validate"}) {
    const std::string help = hydrant_run({command, "--help"}).out;
    const std::string listed = help.substr(0, help.find("Example:"));
    const std::regex flag("^ +(?:-[a-z],)?(--[a-z-]+)", std::regex::multiline);
    size_t found = 0;
    for (std::sregex_iterator it(listed.begin(), listed.end(), flag), end; it != end; ++it) {
      CAPTURE(command, it->str(1));
      CHECK(flags.count(it->str(1)) == 1);
      found++;
    }
    CHECK(found >= 1);
  }
}

TEST_CASE("a backend that this build lacks is refused before the model is opened") {
  const Tiny t;
  const std::string config = t.work.write("device.json", R"({"device": "abacus"})");
  check_refused(hydrant_run({"validate", config}), 2, config + ": device: must be one of");
  for (const char* command : {"generate", "score", "inspect", "bench"})
    check_refused(hydrant_run({command, "--model", "/nowhere", "--device", "abacus"}), 2,
                  "--device: must be one of this build's backends (cpu");  // and others it may have
}
