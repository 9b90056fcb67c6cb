// What is said when something is wrong, and with which exit code.
#include <catch2/catch.hpp>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("help and version") {
  const Outcome version = hydrant_run({"--version"});
  CHECK(version.code == 0);
  CHECK_THAT(version.out, Catch::StartsWith("hydrant "));
  for (const char* command : {"generate", "score", "tokenize", "inspect", "bench", "validate"}) {
    CAPTURE(command);
    const Outcome help = hydrant_run({command, "--help"});
    CHECK(help.code == 0);
    CHECK_THAT(help.out, Catch::Contains(std::string("Example:\n  ")) &&
                             Catch::Contains(std::string("hydrant ") + command));
  }
}

TEST_CASE("a switch takes true or false, help and version take nothing") {
  const Tiny t;
  const Words run{"generate", "--model", t.model.path(), "--prompt", "a", "--max-new-tokens", "2"};
  for (const char* flag : {"--chat", "--no-chat", "--quiet", "--overlap", "--no-overlap"}) {
    const std::string called = flag;
    check_refused(hydrant_run(run + Words{called + "=maybe"}), 2,
                  called + ": must be true or false, not \"maybe\"");
    check_refused(hydrant_run(run + Words{called, called}), 2, called + ": given more than once");
  }
  const std::string chat = t.work.write("chat.json", R"({"chat": true})");
  for (const char* flag : {"--no-chat", "--chat=false", "--no-chat=true"})
    CHECK(hydrant_run(run + Words{"--config", chat, flag}).code == 0);
  for (const char* flag : {"--chat", "--chat=true", "--no-chat=false"})
    check_refused(hydrant_run(run + Words{flag}), 2, "--chat: the folder has no chat template");
  for (const Words& words : {Words{"--help=3"}, Words{"--version=3"}, Words{"score", "--help=3"}})
    check_refused(hydrant_run(words), 2,
                  words.back().substr(0, words.back().find('=')) + ": takes no value");
}

TEST_CASE("a configuration is refused before the model is opened, flags win over it") {
  const Tiny t;
  const std::string bad = t.work.write("bad.json", R"({"cache": {"recnt": 4}})");
  check_refused(hydrant_run({"generate", "--model", "/nowhere", "--prompt", "a", "--config", bad}),
                2, bad + ": cache.recnt: unknown key (did you mean 'cache.recent'?)");
  const std::string good = t.work.write("good.json", R"({"max_new_tokens": 3})");
  const std::string line = R"({"id": 1, "prompt": "a"})";
  CHECK(t.generate(line, {"--config", good}).rows().at(0)["token_ids"].size() == 6);
  const Outcome alone =
      hydrant_run({"generate", "--model", t.model.path(), "--prompts",
                   t.work.write("one.jsonl", line), "--config", good, "--ignore-eos"});
  CHECK(alone.rows().at(0)["token_ids"].size() == 3);
  CHECK(alone.rows().at(0)["config"]["max_new_tokens"] == 3);
}

TEST_CASE("wrong paths are named") {
  const Tiny t;
  for (const std::string flag : {"--json", "--csv"}) {
    check_refused(hydrant_run({"bench", "--model", t.model.path(), flag, "/no/such/b"}), 4,
                  flag + ": cannot write /no/such/b");
    check_refused(hydrant_run({"bench", "--model", t.model.path(), flag, "/tmp"}), 4,
                  flag + ": /tmp is a folder");
  }
  check_refused(hydrant_run({"inspect", t.work.path() + "//"}), 2, t.work.path() + "/config.json");
  check_refused(hydrant_run({"inspect", "/"}), 2, "error: /config.json");
  check_refused(hydrant_run({"generate", "--model", "/no/model", "--prompt", "a"}), 2, "/no/model");
  check_refused(hydrant_run({"generate", "--model", t.model.path(), "--prompts", "/no/in"}), 2,
                "/no/in");
  check_refused(hydrant_run({"generate", "--model", t.model.path(), "--prompts", "/"}), 2, "/: ");
  check_refused(hydrant_run({"generate", "--model", "x", "--prompt", "a", "--config", "/no/c"}), 2,
                "/no/c");
  check_refused(t.generate(R"({"prompt": "a"})", {"--output", "/no/out.jsonl"}), 4,
                "/no/out.jsonl");
  check_refused(hydrant_run({"inspect", t.work.path()}), 2, "config.json");
}

TEST_CASE("output that cannot be written is an error, whatever it is") {
  const Tiny t;
  check_refused(t.generate(R"({"prompt": "a"})", {"--output", "/dev/full"}), 4, "/dev/full");
  const std::string config = t.work.write("empty.json", "{}"),
                    text = t.work.write("text", "some text");
  std::vector<Words> runs{
      {"--help"},
      {"--version"},
      {"generate", "--model", t.model.path(), "--prompt", "a"},
      {"generate", "--model", t.model.path(), "--prompts", "-"},
      {"score", "--model", t.model.path(), "--input", "-"},
      {"score", "--model", t.model.path(), "--perplexity", text},
      {"tokenize", "--model", t.model.path(), "--input", "-"},
      {"inspect", t.model.path()},
      {"inspect", t.model.path(), "--json"},
      {"bench", "--model", t.model.path(), "--prompt-len", "4", "--output-len", "2", "--repeats",
       "1"},
      {"validate", config},
  };
  for (const char* command : {"generate", "score", "tokenize", "inspect", "bench", "validate"})
    runs.push_back({command, "--help"});
  for (const Words& run : runs)
    for (const Stdout out : {Stdout::full, Stdout::closed, Stdout::broken_pipe}) {
      CAPTURE(run, int(out));
      // A line that no command accepts becomes a row with an error, which must be written too.
      check_refused(hydrant_run(run, "{\"id\": 1}\n", out), 4, "standard output: cannot write");
    }
}

TEST_CASE("a file never gets what was meant for a closed stream") {
  const Tiny t;
  const std::string out = t.work.file("out.jsonl");
  for (const Stdout closed : {Stdout::closed, Stdout::all_closed, Stdout::all_full}) {
    CAPTURE(int(closed));
    const Outcome o = hydrant_run({"generate", "--model", t.model.path(), "--prompt", "a",
                                   "--max-new-tokens", "3", "--output", out, "--overwrite"},
                                  "", closed);
    CHECK(o.signal == 0);
    CHECK(o.code == 4);
    CHECK(read_text(out).empty());
  }
  const Outcome rows = hydrant_run(
      {"generate", "--model", t.model.path(), "--prompts", t.work.write("in", R"({"prompt": "a"})"),
       "--max-new-tokens", "3", "--output", out, "--overwrite"},
      "", Stdout::all_closed);
  CHECK(rows.code == 0);
  CHECK(json_lines(read_text(out)).size() == 1);
}

TEST_CASE("damaged model files are refused by name") {
  const Tiny t;
  const std::vector<std::string> run{"generate", "--model", t.model.path(), "--prompt", "a"};
  const std::string weights = read_text(t.model.file("model.safetensors"));
  t.model.write("model.safetensors", weights.substr(0, weights.size() - 1));
  check_refused(hydrant_run(run), 2, "model.safetensors");
  std::string nan = weights;
  nan.replace(nan.size() - 4, 4, "\x00\x00\xc0\x7f", 4);
  t.model.write("model.safetensors", nan);
  check_refused(hydrant_run(run), 2, "model.");
  t.model.write("model.safetensors", weights);
  CHECK(hydrant_run(run).code == 0);
  t.model.write("tokenizer.json", "{");
  check_refused(hydrant_run(run), 2, "tokenizer.json: not valid JSON at column 2: ");
}

TEST_CASE("a bad line becomes an error line, the others run") {
  const Tiny t;
  const std::vector<std::pair<std::string, std::string>> bad{
      {R"({"id": "x", "prompt": "a", "prompt_token_ids": [1]})", "exactly one of"},
      {R"({"id": "x"})", "exactly one of"},
      {R"({"id": "x", "promt": "a"})", "exactly one of"},
      {R"({"id": "x", "prompt": "a", "max_tokens": 3})", "max_tokens: unknown key"},
      {R"({"id": "x", "prompt": 3})", "prompt: must be a text"},
      {R"({"id": "x", "prompt_token_ids": [-1]})", "prompt_token_ids[0]"},
      {R"({"id": "x", "prompt_token_ids": [1, 258]})", "258"},
      {R"({"id": "x", "prompt_token_ids": [4294967296]})", "4294967296"},
      {R"({"id": "x", "prompt_token_ids": [1.5]})", "1.5"},
      {R"({"id": "x", "prompt_token_ids": [[1]]})", "[1]"},
      {R"({"id": "x", "prompt_token_ids": []})", "no tokens"},
      {R"({"id": "x", "prompt_token_ids": {}})", "a list of token ids"},
      {R"({"id": "x", "prompt_token_ids": [NaN]})", "not valid JSON"},
      {R"({"id": "x", "prompt": "a", "max_new_tokens": 0})", "max_new_tokens: must be"},
      {R"({"id": "x", "prompt": "a", "max_new_tokens": -2})", "max_new_tokens: must be"},
      {R"({"id": "x", "prompt": "a", "stop": [""]})", "stop: must be"},
      {R"({"id": "x", "prompt": "a", "seed": "s"})", "seed: must be"},
      {R"({"id": "x", "messages": [{"role": "user", "content": "a"}]})", "--chat"},
      {R"({"id": [1], "prompt": "a"})", "id: must be"},
      {R"({"id": "good", "prompt": "b"})", "of line 21, is also that of line 1"},
      {"{\"id\": \"x\", \"prompt\": \"\xff\"}", "UTF-8"},
      {R"(["a"])", "must be a JSON object"},
      {R"({"id": "x", "prompt": "a")", "not valid JSON"},
      {std::string(5000, '['), "nested deeper"},
  };
  std::string lines = "{\"id\": \"good\", \"prompt\": \"a\"}\n";
  for (size_t i = 0; i < bad.size(); i++) {
    std::string line = bad[i].first;
    if (const size_t x = line.find("\"x\""); x != line.npos) line.replace(x, 3, std::to_string(i));
    lines += line + "\n";
  }
  const Outcome o = t.generate(lines + "\n  \n{\"id\": \"last\", \"prompt\": \"c\"}");
  CHECK(o.code == 1);
  CHECK_THAT(o.err, Catch::Contains("24 of 26 lines failed; line 2: exactly one of"));
  std::map<size_t, std::string> errors;
  size_t good = 0;
  for (const Json& row : o.rows())
    if (row.contains("error"))
      errors[row["line"].get<size_t>()] = row["error"].get<std::string>();
    else
      good++;
  CHECK(good == 2);
  for (size_t i = 0; i < bad.size(); i++) {
    CAPTURE(bad[i].first);
    CHECK_THAT(errors[i + 2], Catch::Contains(bad[i].second) && !Catch::StartsWith("line") &&
                                  !Catch::Contains("row"));
  }
}

TEST_CASE("a role that the chat template does not know is refused") {
  const Tiny t;
  const std::string each =
      "{% for m in messages %}<|im_start|>{{ m['role'] }} {{ m['content'] }}{% endfor %}";
  const auto line = [](const std::string& role) {
    return Json{
        {"messages", {{{"role", "user"}, {"content", "a"}}, {{"role", role}, {"content", "b"}}}}}
        .dump();
  };
  const auto error = [&](const std::string& role) {
    const Json row = t.generate(line(role), {"--chat"}).rows().at(0);
    return row.contains("error") ? row["error"].get<std::string>() : "";
  };
  t.model.write("chat_template.jinja", each);
  for (const char* role : {"user", "assistant", "system"}) CHECK(error(role) == "");
  const std::string says = "is none of the chat template's";
  CHECK(error("usr") == "messages[1].role: 'usr' " + says + " (did you mean 'user'?)");
  CHECK(error("Assistant") ==
        "messages[1].role: 'Assistant' " + says + " (did you mean 'assistant'?)");
  CHECK_THAT(error("tool"), Catch::Contains("'tool' " + says));
  CHECK_THAT(error(""), Catch::Contains("'' " + says));
  t.model.write("chat_template.jinja", "{% if messages[0].role == 'tool' %}{% endif %}" + each);
  CHECK(error("tool") == "");
}

TEST_CASE("what is wrong with a line is told once with its number, and quotes it as written") {
  const Tiny t;
  struct Case {
    std::string line, says;
  };
  for (const Case& c : std::vector<Case>{
           {R"({"prompt": "a", "seed": 1e999})", "not valid JSON at column 29: number overflow"},
           {R"({"prompt": "a",})", "not valid JSON at column 16: "},
           {R"({"prompt": "a", "max_new_tokens": 1e3})",
            "max_new_tokens: must be an integer from 1 to 16777216, not 1e3"},
           {R"({"prompt": "a", "seed": 99999999999999999999})",
            "seed: must be an integer from 0 to 18446744073709551615, not 99999999999999999999"},
           {R"({"id": 1.50, "prompt": "a"})", "id: must be a text or an integer, not 1.50"},
           {R"({"prompt_token_ids": [1, 2.0]})",
            "prompt_token_ids[1]: must be a token id from 0 to 2147483647, not 2.0"},
           {R"({"prompt_token_ids": [1, 258]})", "prompt id 258: must be 0 to 257"},
           {R"({"prompt_token_ids": []})", "the prompt has no tokens"},
       }) {
    CAPTURE(c.line);
    const Outcome o = t.generate("{\"prompt\": \"a\"}\n" + c.line + "\n");
    CHECK(o.code == 1);
    CHECK_THAT(o.err, Catch::Contains("1 of 2 lines failed; line 2: " + c.says.substr(0, 20)));
    CHECK_THAT(o.err, !Catch::Contains("line 2: line") && !Catch::Contains("row 2"));
    for (const Json& row : o.rows())
      if (row.contains("error")) {
        CHECK(row["line"] == 2);
        CHECK_THAT(row["error"].get<std::string>(),
                   Catch::Contains(c.says) && !Catch::Contains("line "));
      }
  }
}

TEST_CASE("an output that is also the input is refused and left as it was") {
  const Tiny t;
  const std::string text = "{\"id\": 1, \"prompt\": \"a\", \"text\": \"a\"}\n";
  const std::string file = t.work.write("rows", text);
  const std::string same = t.work.path() + "/./rows";  // another spelling of it
  for (const std::vector<std::string>& run :
       {std::vector<std::string>{"generate", "--prompts", file},
        std::vector<std::string>{"tokenize", "--input", file},
        std::vector<std::string>{"score", "--perplexity", file}}) {
    std::vector<std::string> arguments = run;
    arguments.insert(arguments.end(), {"--model", t.model.path(), "--output", same});
    check_refused(hydrant_run(arguments), 2, "--output: " + same + " is also what " + run[1]);
    CHECK(read_text(file) == text);
  }
}

TEST_CASE("invalid UTF-8 is refused with its place") {
  const Tiny t;
  check_refused(hydrant_run({"generate", "--model", t.model.path(), "--prompt", "ab\xff"}), 2,
                "--prompt: not UTF-8 at byte 2");
  check_refused(hydrant_run({"generate", "--model", t.model.path(), "--prompt", "-"}, "\xc3"), 2,
                "standard input: not UTF-8 at byte 0");
  const std::string file = t.work.write("text", "abc\xf0\x9f");
  check_refused(hydrant_run({"score", "--model", t.model.path(), "--perplexity", file}), 2,
                "not UTF-8 at byte 3");
}

TEST_CASE("an id is one line's alone, and a line without a usable one is known by its number") {
  const Tiny t;
  struct Case {
    std::string lines, says;
    size_t line;
  };
  const std::string unnamed = ", which has none and is called by its number";
  for (const Case& c : std::vector<Case>{
           {R"({"id": 7, "prompt": "a"}|{"id": 7, "prompt": "b"})",
            "id: 7, of line 2, is also that of line 1", 2},
           {R"({"prompt": "a"}|{"id": 1, "prompt": "b"})",
            "id: 1, of line 2, is also that of line 1" + unnamed, 2},
           {R"({"id": 2, "prompt": "a"}|{"prompt": "b"})",
            "id: 2, of line 2" + unnamed + ", is also that of line 1", 2},
           {R"({"id": 2, "prompt": "a"}|{"id": 2.5, "prompt": "b"})", "id: must be", 2},
           {R"({"id": null, "prompt": "a"}|{"prompt": "b"})", "id: must be", 1},
           {R"({"id": 1, "prompt": "a"|{"id": 1, "prompt": "b"})", "not valid JSON", 1},
       }) {
    CAPTURE(c.lines);
    std::string lines = c.lines;
    lines[lines.find('|')] = '\n';
    const Outcome o = t.generate(lines);
    CHECK(o.code == 1);
    const auto rows = o.rows();
    REQUIRE(rows.size() == 2);
    for (const Json& row : rows) {
      if (!row.contains("error")) continue;
      CHECK(row["id"].is_null());
      CHECK(row["line"] == c.line);
      CHECK_THAT(row["error"].get<std::string>(), Catch::Contains(c.says));
    }
    CHECK(rows[0].contains("error") != rows[1].contains("error"));
  }
  const Outcome same_kind = t.generate(
      "{\"id\": 1, \"prompt\": \"a\"}\n"
      "{\"id\": \"1\", \"prompt\": \"b\"}\n");
  CHECK(same_kind.code == 0);
}

TEST_CASE("ids that end a row must be in the vocabulary") {
  const Tiny t;
  const std::vector<std::string> run{"generate", "--model", t.model.path(), "--prompt", "a"};
  auto flag = run, file = run;
  flag.insert(flag.end(), {"--stop-ids", "5,258"});
  check_refused(hydrant_run(flag), 2,
                "--stop-ids: must be 0 to 257, the model's vocabulary, not 258");
  const std::string config = t.work.write("ids.json", R"({"stop_ids": [999]})");
  file.insert(file.end(), {"--config", config});
  check_refused(hydrant_run(file), 2,
                config + ": stop_ids: must be 0 to 257, the model's vocabulary, not 999");
  const Outcome row = t.generate(R"({"prompt": "a", "stop_ids": [258]})");
  CHECK(row.code == 1);
  CHECK_THAT(row.rows().at(0)["error"].get<std::string>(),
             Catch::Contains("stop_ids: must be 0 to 257"));
  CHECK(t.generate(R"({"prompt": "a", "stop_ids": [257]})").code == 0);
  const std::string described = read_text(t.model.file("config.json"));
  Json edited = Json::parse(described);
  edited["eos_token_id"] = 258;
  t.model.write("config.json", edited.dump());
  check_refused(hydrant_run(run), 2, "config.json: the end-of-text id 258 is not below");
}
