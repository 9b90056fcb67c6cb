// The commands as a user meets them: what goes in and what comes out.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

std::string ids(int count) {
  Json list = Json::array();
  for (int i = 0; i < count; i++) list.push_back(i % 256);
  return list.dump();
}

}  // namespace

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
  const Outcome equals = hydrant_run(
      {"generate", "--model", t.model.path(), "--prompt=", "--max-new-tokens=6", "--ignore-eos"});
  CHECK(equals.out == o.out);
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
  quiet.insert(quiet.end(), {"--quiet", "--overwrite"});
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

TEST_CASE("each layer may have a budget of its own") {
  const Tiny t;
  const std::string line = R"({"prompt_token_ids": [5, 6, 7, 8, 9]})";
  const Json row =
      t.generate(line, {"--report-kept", "--policy", "h2o", "--layer-budgets", "3,7"}).rows().at(0);
  CHECK(row["kept"][0][0].size() == 3);
  CHECK(row["kept"][1][1].size() == 7);
  check_refused(t.generate(line, {"--policy", "h2o", "--layer-budgets", "3,7,9"}), 2,
                "--layer-budgets: must be one for each of the model's 2 layers");
}

TEST_CASE("a BOS that a text spells beside the tokenizer's own is warned of") {
  const Tiny t;
  CHECK_THAT(t.generate(R"({"prompt": "<s>a"})").err, Catch::Contains("two BOS tokens (id 256)"));
  CHECK_THAT(t.generate(R"({"prompt": "a"})").err, !Catch::Contains("BOS"));
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
  // A window has no prompt that slots could be a share of.
  CHECK_THAT(hydrant_run(run + Words{"--policy", "local", "--recent", "20"}).err,
             Catch::Contains("20 slots, ") && !Catch::Contains("of the prompt"));
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
  CHECK(hydrant_run({"inspect", t.model.path(), "--placement", "0,100,100,0,100,0", "--memory-link",
                     "3GB/s"})
            .code == 0);
  const Outcome tight = hydrant_run({"inspect", t.model.path(), "--memory-device", "1KiB"});
  CHECK(tight.code == 3);
  CHECK_THAT(tight.out, Catch::Contains("does not fit: --memory-device: 1.0 KiB are not enough"));
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
  const std::vector<cpu::Isa>& usable = cpu::usable_isas();
  for (const cpu::Isa isa : {cpu::Isa::avx2, cpu::Isa::avx512, cpu::Isa::amx}) {
    if (std::find(usable.begin(), usable.end(), isa) != usable.end()) continue;
    const std::string lacked(name(isa));
    const std::string config = t.work.write("isa.json", Json{{"isa", lacked}}.dump());
    const std::string says = ": this machine cannot use '" + lacked + "', only generic";
    check_refused(hydrant_run({"inspect", t.model.path(), "--isa", lacked}), 2, "--isa" + says);
    check_refused(hydrant_run({"inspect", t.model.path(), "--config", config}), 2,
                  config + ": isa" + says);
    check_refused(
        Process({{"inspect", t.model.path()}, "", Stdout::captured, {"HYDRANT_ISA=" + lacked}})
            .wait(),
        2, "HYDRANT_ISA" + says);
    const Outcome elsewhere = hydrant_run({"validate", config});
    CHECK(elsewhere.code == 0);
    CHECK_THAT(elsewhere.err, Catch::Contains("warning: " + config + ": isa" + says));
  }
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
      2, "--output-len: must be 1 to 5 after a prompt of 60, for the model's 64 positions, not 6");
}
