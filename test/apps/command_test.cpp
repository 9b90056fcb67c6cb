// The program as a user meets it: what goes in, what comes out, and what is said when it goes
// wrong.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <thread>

#include "runtime/base/file.hpp"
#include "test/apps/process.hpp"
#include "test/apps/tiny_checkpoint.hpp"
#include "test/support/checkpoint_writer.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

struct Tiny {
  Tiny() { write_tiny_checkpoint(model); }
  TemporaryFolder model, work;

  Outcome generate(const std::string& lines, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{
        "generate",         "--model", model.path(),  "--prompts", work.write("in.jsonl", lines),
        "--max-new-tokens", "6",       "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hydrant_run(arguments);
  }
};

std::map<std::string, Json> by_id(const std::vector<Json>& rows) {
  std::map<std::string, Json> map;
  for (const Json& row : rows) map[row["id"].dump()] = row;
  REQUIRE(map.size() == rows.size());
  return map;
}

// Refused by an exit code of its own, in one short message, not by a signal.
void check_refused(const Outcome& o, int code, const std::string& says) {
  CAPTURE(o.err);
  CHECK(o.signal == 0);
  CHECK(o.code == code);
  CHECK_THAT(o.err, Catch::Contains("hydrant: error: ") && Catch::Contains(says));
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') <= 8);
}

std::string ids(int count) {
  Json list = Json::array();
  for (int i = 0; i < count; i++) list.push_back(i % 256);
  return list.dump();
}

}  // namespace

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

TEST_CASE("typing mistakes are refused with the nearest word") {
  const Tiny t;
  check_refused(hydrant_run({}), 2, "a command is needed");
  check_refused(hydrant_run({"genrate"}), 2, "did you mean 'generate'");
  check_refused(hydrant_run({"generate", "--modle", "x"}), 2, "did you mean '--model'");
  check_refused(hydrant_run({"generate", "--model"}), 2, "--model");
  check_refused(hydrant_run({"generate", "--model", "x"}), 2, "--prompt");
  check_refused(hydrant_run({"generate", "--prompt", "x"}), 2, "--model");
  check_refused(hydrant_run({"generate", "--model", "x", "--prompt", "a", "--prompts", "b"}), 2,
                "--prompt: cannot stand beside --prompts");
  check_refused(hydrant_run({"generate", "--model", "x", "--prompt", "a", "--heavy", "-3"}), 2,
                "--heavy: must be");
  check_refused(hydrant_run({"generate", "--model", "x", "--prompt", "a", "extra"}), 2, "extra");
  check_refused(hydrant_run({"score", "--model", "x"}), 2, "--perplexity");
  check_refused(hydrant_run({"bench", "--model", "x", "--batch", "1,x"}), 2, "--batch: must be");
}

TEST_CASE("a configuration is refused before the model is opened; flags win over it") {
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
  const std::vector<std::string> prompt{"generate", "--model", t.model.path(), "--prompt", "a"};
  check_refused(t.generate(R"({"prompt": "a"})", {"--output", "/dev/full"}), 4, "/dev/full");
  for (const Stdout out : {Stdout::full, Stdout::closed, Stdout::broken_pipe}) {
    CAPTURE(int(out));
    check_refused(hydrant_run(prompt, "", out), 4, "standard output: cannot write");
    check_refused(hydrant_run({"inspect", t.model.path()}, "", out), 4, "standard output");
    check_refused(hydrant_run({"tokenize", "--model", t.model.path(), "--input", "-"},
                              R"({"text": "a"})", out),
                  4, "standard output");
  }
}

TEST_CASE("Ctrl-C ends a run at its next step and keeps what is finished") {
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
  CHECK_THAT(o.err, Catch::Contains("interrupted"));
  const auto rows = json_lines(read_text(out));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["id"] == "short");
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
  check_refused(hydrant_run(run), 2, "tokenizer.json");
}

TEST_CASE("a bad line becomes an error line; the others run") {
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
      {R"({"id": "good", "prompt": "b"})", "occurred before"},
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
  CHECK_THAT(o.err, Catch::Contains("24 of 26 rows failed"));
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
    CHECK_THAT(errors[i + 2], Catch::Contains(bad[i].second));
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

TEST_CASE("prompts at the model's limit") {
  const Tiny t;
  const auto line = [](const std::string& id, int length) {
    return R"({"id": ")" + id + R"(", "prompt_token_ids": )" + ids(length) + "}\n";
  };
  const std::string lines = line("below", kTinyPositions - 1) + line("at", kTinyPositions) +
                            line("beyond", kTinyPositions + 1);
  const Outcome o = t.generate(lines);
  CHECK(o.code == 1);
  auto rows = by_id(o.rows());
  // The token that the last position gives is chosen but has no place to be fed at.
  CHECK(rows[R"("below")"]["token_ids"].size() == 2);
  CHECK(rows[R"("below")"]["finish_reason"] == "length");
  CHECK(rows[R"("at")"]["token_ids"].size() == 1);
  CHECK_THAT(rows[R"("beyond")"]["error"].get<std::string>(),
             Catch::Contains("65") && Catch::Contains("64"));
  const Outcome past =
      t.generate(lines, {"--policy", "h2o", "--budget", "16", "--positions", "cache"});
  CHECK(past.code == 0);
  for (const Json& row : past.rows()) CHECK(row["token_ids"].size() == 6);
}

TEST_CASE("an empty prompt is its BOS alone, on every way in") {
  const Tiny t;
  const Json row = t.generate(R"({"prompt": ""})").rows().at(0);
  CHECK(row["prompt_tokens"] == 1);
  CHECK(row["id"] == 1);
  const Outcome o = hydrant_run({"generate", "--model", t.model.path(), "--prompt", "",
                                 "--max-new-tokens", "6", "--ignore-eos"});
  CHECK(o.code == 0);
  CHECK(o.out == row["text"].get<std::string>() + "\n");
}

TEST_CASE("a prompt's text streams to standard output, the figures to standard error") {
  const Tiny t;
  const std::vector<std::string> run{"generate", "--model",  t.model.path(),
                                     "--prompt", "-",        "--max-new-tokens",
                                     "20",       "--output", t.work.file("row.jsonl")};
  const Outcome o = hydrant_run(run, "Some text");
  CHECK(o.code == 0);
  const Json row = json_lines(read_text(t.work.file("row.jsonl"))).at(0);
  CHECK(o.out == row["text"].get<std::string>() + "\n");
  CHECK_THAT(o.err, Catch::Contains("raw text") && Catch::Contains("tok/s") &&
                        Catch::Contains("peak memory") && Catch::Contains("threads"));
  std::vector<std::string> quiet = run;
  quiet.push_back("--quiet");
  CHECK(hydrant_run(quiet, "Some text").err.empty());
}

TEST_CASE("a row's draws are its own") {
  const Tiny t;
  const std::vector<std::string> lines{R"({"id": "a", "prompt": "one"})",
                                       R"({"id": "b", "prompt": "one"})",
                                       R"({"id": "c", "prompt": "another"})"};
  const std::vector<std::string> hot{"--temperature", "1.5", "--seed", "3"};
  auto together = by_id(t.generate(lines[0] + "\n" + lines[1] + "\n" + lines[2], hot).rows());
  auto reversed = by_id(t.generate(lines[2] + "\n" + lines[1] + "\n" + lines[0], hot).rows());
  for (const std::string& line : lines) {
    const Json alone = t.generate(line, hot).rows().at(0);
    const std::string id = alone["id"].dump();
    for (const char* key : {"token_ids", "logprobs", "text"}) {
      CHECK(together[id][key] == alone[key]);
      CHECK(reversed[id][key] == alone[key]);
    }
  }
  CHECK(together[R"("a")"]["token_ids"] != together[R"("b")"]["token_ids"]);
  auto other = by_id(t.generate(lines[0], {"--temperature", "1.5", "--seed", "4"}).rows());
  CHECK(other[R"("a")"]["token_ids"] != together[R"("a")"]["token_ids"]);
}

TEST_CASE("stops") {
  const Tiny t;
  const Json whole = t.generate(R"({"prompt_token_ids": [5, 6, 7]})").rows().at(0);
  const Json third = whole["token_ids"][2];
  const Json by_token =
      t.generate(R"({"prompt_token_ids": [5, 6, 7]})", {"--stop-ids", third.dump()}).rows().at(0);
  const size_t first =
      size_t(std::find(whole["token_ids"].begin(), whole["token_ids"].end(), third) -
             whole["token_ids"].begin());
  CHECK(by_token["finish_reason"] == "stop");
  CHECK(by_token["token_ids"].size() == first + 1);
  CHECK(whole["finish_reason"] == "length");
}

TEST_CASE("the likeliest tokens and the kept positions are reported when asked for") {
  const Tiny t;
  const Json row = t.generate(R"({"prompt_token_ids": [5, 6, 7]})",
                              {"--logprobs", "3", "--report-kept", "--policy", "h2o", "--heavy",
                               "2", "--recent", "3"})
                       .rows()
                       .at(0);
  REQUIRE(row["top_logprobs"].size() == 6);
  for (size_t i = 0; i < 6; i++) {
    REQUIRE(row["top_logprobs"][i].size() == 3);
    CHECK(row["top_logprobs"][i][0]["id"] == row["token_ids"][i]);
    CHECK(row["top_logprobs"][i][0]["logprob"] == row["logprobs"][i]);
    CHECK(row["top_logprobs"][i][0]["logprob"] >= row["top_logprobs"][i][1]["logprob"]);
  }
  REQUIRE(row["kept"].size() == 2);   // layers
  CHECK(row["kept"][0].size() == 2);  // KV heads
  CHECK(row["kept"][0][0].size() == 5);
  CHECK(row["kept"][0][0][4] == 7);  // 3 + 6 - 1 positions have been processed
}

TEST_CASE("score judges what generate chose as greedy, with the same numbers") {
  const Tiny t;
  const Json row =
      t.generate(R"({"prompt_token_ids": [5, 6, 7]})", {"--compute-dtype", "f32"}).rows().at(0);
  const std::string pairs =
      Json{
          {"id", 1}, {"context_token_ids", {5, 6, 7}}, {"continuation_token_ids", row["token_ids"]}}
          .dump() +
      "\n" + R"({"id": 2, "context": "ab", "continuation": "cd"})" + "\n" +
      R"({"id": 3, "context": "ab", "continuation_token_ids": [1]})" + "\n" +
      R"({"id": 4, "context": "ab", "continuation": ""})" + "\n";
  const Outcome o = hydrant_run(
      {"score", "--model", t.model.path(), "--input", "-", "--compute-dtype", "f32"}, pairs);
  CHECK(o.code == 1);
  auto rows = by_id(o.rows());
  CHECK(rows["1"]["is_greedy"] == true);
  CHECK(rows["1"]["token_logprobs"] == row["logprobs"]);
  CHECK(rows["2"]["token_logprobs"].size() == 2);
  CHECK(rows["2"]["sum_logprob"].get<double>() ==
        Approx(rows["2"]["token_logprobs"][0].get<double>() +
               rows["2"]["token_logprobs"][1].get<double>()));
  CHECK(rows["3"].contains("error"));
  CHECK_THAT(rows["4"]["error"].get<std::string>(), Catch::Contains("no tokens"));
}

TEST_CASE("perplexity judges every token of a text once") {
  const Tiny t;
  const std::string text(150, 'q');
  const std::string file = t.work.write("text", text);
  const std::vector<std::string> run{"score", "--model", t.model.path(), "--perplexity", file};
  const Json sliding = hydrant_run(run).rows().at(0);
  CHECK(sliding["tokens"] == 150);
  CHECK(sliding["windows"] == 4);  // 63, 32, 32 and 23 of 64 positions
  CHECK(sliding["perplexity"].get<double>() == Approx(std::exp(sliding["nll"].get<double>())));
  std::vector<std::string> one = run;
  one.insert(one.end(), {"--policy", "local", "--recent", "20", "--positions", "cache"});
  const Json whole = hydrant_run(one).rows().at(0);
  CHECK(whole["tokens"] == 150);
  CHECK(whole["windows"] == 1);
  one = run;
  one.insert(one.end(), {"--context", "65"});
  check_refused(hydrant_run(one), 2, "--context: must be 2 to 64");
}

TEST_CASE("tokenize") {
  const Tiny t;
  const Outcome o = hydrant_run({"tokenize", "--model", t.model.path(), "--input", "-"},
                                "{\"id\": 1, \"text\": \"ab\"}\n"
                                "{\"id\": 2, \"text\": \"ab\", \"add_special\": false}\n"
                                "{\"id\": 3}\n");
  CHECK(o.code == 1);
  auto rows = by_id(o.rows());
  CHECK(rows["1"]["token_ids"] == Json({256, 97, 98}));
  CHECK(rows["1"]["decoded"] == "ab");
  CHECK(rows["2"]["token_ids"] == Json({97, 98}));
  CHECK_THAT(rows["3"]["error"].get<std::string>(), Catch::Contains("text: is needed"));
}

TEST_CASE("inspect predicts, in JSON on request") {
  const Tiny t;
  const Outcome o = hydrant_run({"inspect", t.model.path(), "--json", "--batch", "3", "--length",
                                 "40", "--policy", "h2o", "--budget", "25%"});
  CHECK(o.code == 0);
  const Json doc = Json::parse(o.out);
  CHECK(doc["architecture"]["family"] == "llama");
  CHECK(doc["memory"]["budget_slots"] == 10);
  // rows * layers * kv heads * ceil16(slots + 1) * (2 * head_dim * bf16 + score and position)
  CHECK(doc["memory"]["kv_bytes"] == 3 * 2 * 2 * 16 * (2 * 8 * 2 + 8));
  CHECK(doc["memory"]["full_kv_bytes"] == 3 * 2 * 2 * 48 * (2 * 8 * 2 + 8));
  CHECK_THAT(hydrant_run({"inspect", t.model.path()}).out, Catch::Contains("byte-level BPE"));
  check_refused(hydrant_run({"inspect", t.model.path(), "--length", "70"}), 2, "64");
}

TEST_CASE("the instruction path can be lowered, and only to one that is there") {
  const Tiny t;
  CHECK_THAT(hydrant_run({"inspect", t.model.path(), "--isa", "generic"}).out,
             Catch::Contains("cpu: generic"));
  const Outcome o =
      Process({{"inspect", t.model.path()}, "", Stdout::captured, {"HYDRANT_ISA=generic"}}).wait();
  CHECK_THAT(o.out, Catch::Contains("cpu: generic"));
  check_refused(
      Process({{"inspect", t.model.path()}, "", Stdout::captured, {"HYDRANT_ISA=best"}}).wait(), 2,
      "HYDRANT_ISA: must be one of generic");
}

TEST_CASE("bench measures every combination and says what each lost") {
  const Tiny t;
  const std::string json = t.work.file("b.json"), csv = t.work.file("b.csv");
  const Outcome o = hydrant_run({"bench",        "--model",   t.model.path(),
                                 "--prompt-len", "24",        "--output-len",
                                 "1,8",          "--batch",   "1,3",
                                 "--policy",     "full,h2o",  "--budget",
                                 "8,100%",       "--repeats", "2",
                                 "--warmup",     "0",         "--json",
                                 json,           "--csv",     csv});
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  const Json rows = Json::parse(read_text(json))["rows"];
  REQUIRE(rows.size() == 2 * 2 * 3);
  for (const Json& row : rows) {
    CAPTURE(row.dump());
    const bool decodes = row["output_len"] != 1, fits = row["budget_slots"] != 8;
    CHECK(row["prefill_tokens_per_second_min"] <= row["prefill_tokens_per_second"]);
    CHECK(row["prefill_tokens_per_second"] <= row["prefill_tokens_per_second_max"]);
    CHECK(row["decode_tokens_per_second"].is_null() != decodes);
    CHECK(row["total_tokens_per_second"] > 0);
    CHECK(row["repeats"] == 2);
    CHECK((row["kv_bytes"] == row["full_kv_bytes"]) == fits);
    CHECK(row["peak_bytes"] > 0);
    if (fits) CHECK(row["agreement"] == 1);
    if (fits) CHECK(row["mean_kl"] == 0);
    if (decodes && !fits) CHECK(row["mean_kl"] > 0);
    for (const char* key : {"weight_format", "kv_dtype", "activations", "isa", "threads"})
      CHECK(row.contains(key));
  }
  const std::string lines = read_text(csv);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == ptrdiff_t(rows.size()) + 1);
  check_refused(
      hydrant_run({"bench", "--model", t.model.path(), "--prompt-len", "60", "--output-len", "6"}),
      2, "--output-len: 60 + 6");
}
