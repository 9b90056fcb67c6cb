// The program over the emulated card: what it says of devices, and what is left when one fails.
#include <catch2/catch.hpp>
#include <regex>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

Outcome run_where(const std::vector<std::string>& environment, Words arguments) {
  return Process({std::move(arguments), "", Stdout::captured, environment}).wait();
}

// Six rows, of which two run at a time, longer and longer.
Words generate(const Tiny& t, Words more = {}) {
  std::string lines;
  for (int row = 1; row <= 6; row++)
    lines += "{\"id\": " + std::to_string(row) +
             ", \"prompt\": \"one two\", \"max_new_tokens\": " + std::to_string(3 * row) + "}\n";
  return Words{"generate",
               "--device",
               "cuda",
               "--ignore-eos",
               "--model",
               t.model.path(),
               "--prompts",
               t.work.write("in.jsonl", lines),
               "--rows-per-group",
               "2"} +
         more;
}

}  // namespace

TEST_CASE("devices are listed with what they are, or why they cannot be used") {
  const auto list = [](const std::vector<std::string>& environment) {
    return run_where(environment, {"inspect", "--devices"}).out;
  };
  CHECK_THAT(list({"EMU_DEVICES=2"}), Catch::Contains("cuda:0    Emulated GPU, sm_80, 2048 MiB\n"
                                                      "cuda:1    Emulated GPU, sm_80, 2048 MiB\n"));
  CHECK_THAT(list({"EMU_DEVICES=0"}),
             Catch::Contains("cuda      cannot be used: no NVIDIA driver is installed\n"));
  CHECK_THAT(list({"EMU_DRIVER=11040"}),
             Catch::Contains("cuda      cannot be used: the NVIDIA driver") &&
                 Catch::Contains("needs one for"));
  check_refused(run_where({}, {"inspect", "--devices", "/some/model"}), 2, "--devices");
}

TEST_CASE("what is found out when a device is opened is said in its line, and only there") {
  const auto check = [](const std::string& fault, const std::string& sm, const std::string& why) {
    const Outcome o = run_where({"EMU_DEVICES=3", "EMU_ONLY=1", fault}, {"inspect", "--devices"});
    CAPTURE(fault, o.out, o.err);
    CHECK(o.code == 0);
    CHECK_THAT(o.out, Catch::EndsWith("cuda:0    Emulated GPU, sm_80, 2048 MiB\n"
                                      "cuda:1    Emulated GPU, sm_" +
                                      sm + ", 2048 MiB; cannot be used: " + why +
                                      "\n"
                                      "cuda:2    Emulated GPU, sm_80, 2048 MiB\n"));
    CHECK(o.err == "");
  };
  check("EMU_START=2", "80", "no memory left there for one more program");
  check("EMU_START=46", "80",
        "it takes no program, or no other beside the one that has it (its compute mode: nvidia-smi "
        "-q -d COMPUTE)");
  check("EMU_START=999", "80",
        "it cannot be opened: an error of the emulated device (cudaErrorEmulated)");
  check("EMU_CODE=0", "80",
        "this program was built without code for compute capability 8.0 "
        "(HYDRANT_CUDA_ARCHITECTURES)");
  check("EMU_SM=61", "61", "compute capability 6.1, expected 7.5 or later");
  // Where none can be used, each still says why.
  const Outcome none = run_where({"EMU_DEVICES=2", "EMU_SM=61"}, {"inspect", "--devices"});
  CHECK_THAT(none.out, Catch::Contains("\ncuda:1    Emulated GPU, sm_61") &&
                           Catch::Contains("cuda:0    Emulated GPU, sm_61"));
}

TEST_CASE("one of several devices is chosen by its number") {
  const Tiny t;
  const Outcome second = run_where({"EMU_DEVICES=2"}, generate(t, {"--device", "cuda"}));
  CHECK(second.code == 2);  // given twice
  Words words = generate(t);
  for (std::string& word : words)
    if (word == "cuda") word = "cuda:1";
  const Outcome o = run_where({"EMU_DEVICES=2"}, words);
  CAPTURE(o.err);
  CHECK(o.code == 0);
  CHECK_THAT(o.err, Catch::Contains("cuda:1 Emulated GPU"));
  check_refused(run_where({}, words), 2,
                "there is no device 1, only 0: Emulated GPU, sm_80, 2048 MiB");
  for (std::string& word : words)
    if (word == "cuda:1") word = "cuda:x";
  check_refused(run_where({}, words), 2, "a backend, a colon and a number");
}

TEST_CASE("a kernel that faults ends the run with its step and layer, and finished rows are kept") {
  const Tiny t;
  const Outcome whole = run_where({}, generate(t));
  CAPTURE(whole.err);
  REQUIRE(whole.code == 0);
  const auto expected = by_id(whole.rows());
  REQUIRE(expected.size() == 6);
  size_t most = 0;
  for (const char* at : {"1", "60", "400", "900"}) {
    const Outcome o = run_where({std::string("EMU_BREAK_AT=") + at}, generate(t));
    CAPTURE(at, o.err);
    CHECK(o.signal == 0);
    CHECK(o.code == 4);
    CHECK(std::regex_search(
        o.err,
        std::regex("hydrant: error: step [0-9]+, (inputs|embedding|head|layer [0-9]+): cuda: .*"
                   "the cause may be work that was enqueued before")));
    const auto rows = by_id(o.rows());
    CHECK(rows.size() < 6);
    most = std::max(most, rows.size());
    for (const auto& [id, row] : rows) CHECK(row["token_ids"] == expected.at(id)["token_ids"]);
  }
  CHECK(most > 0);
}

TEST_CASE("a card that is lost while weights and caches are copied ends the run with one message") {
  const Tiny t;
  const Words offloaded{"--placement", "30,70,30,70,100,0", "--policy", "h2o", "--budget", "50%"};
  const Outcome whole = run_where({}, generate(t, offloaded));
  CAPTURE(whole.err);
  REQUIRE(whole.code == 0);
  const auto expected = by_id(whole.rows());
  size_t most = 0;
  for (const char* at : {"3", "30", "90", "150"}) {
    const Outcome o = run_where({std::string("EMU_LOSE_AT=") + at}, generate(t, offloaded));
    CAPTURE(at, o.err);
    CHECK(o.signal == 0);
    CHECK(o.code == 4);
    const std::string error = "hydrant: error: ";
    const size_t first = o.err.find(error);
    REQUIRE(first != o.err.npos);
    CHECK(o.err.find(error, first + 1) == o.err.npos);
    CHECK_THAT(o.err.substr(first), Catch::Contains("cuda: "));
    const std::string where = std::string_view(at) == "3"
                                  ? "loading weights"
                                  : "step [0-9]+, (inputs|embedding|head|layer [0-9]+)";
    CHECK(std::regex_search(o.err, std::regex("hydrant: error: " + where + ": cuda: ")));
    const auto rows = by_id(o.rows());
    CHECK(rows.size() < 6);
    most = std::max(most, rows.size());
    for (const auto& [id, row] : rows) CHECK(row["token_ids"] == expected.at(id)["token_ids"]);
  }
  CHECK(most > 0);
}

TEST_CASE("a card that is lost while rows are scored leaves those that were done") {
  const Tiny t;
  std::string lines;
  for (int row = 1; row <= 6; row++) {
    std::string text;
    for (int word = 0; word < 2 * row; word++) text += " two";
    lines += "{\"id\": " + std::to_string(row) + ", \"context\": \"one\", \"continuation\": \"" +
             text + "\"}\n";
  }
  const std::string input = t.work.write("in.jsonl", lines);
  const auto score = [&](const std::string& environment) {
    return run_where({environment}, {"score", "--device", "cuda", "--model", t.model.path(),
                                     "--input", input, "--rows-per-group", "1"});
  };
  const Outcome whole = score("EMU_LOSE_AT=0");
  CAPTURE(whole.err);
  REQUIRE(whole.code == 0);
  const auto expected = by_id(whole.rows());
  REQUIRE(expected.size() == 6);
  size_t most = 0;
  for (const char* at : {"2", "400", "900"}) {
    const Outcome o = score(std::string("EMU_BREAK_AT=") + at);
    CAPTURE(at, o.err);
    CHECK(o.code == 4);
    CHECK_THAT(o.err, Catch::Contains("hydrant: error: ") && Catch::Contains("cuda: "));
    const auto rows = by_id(o.rows());
    CHECK(rows.size() < 6);
    most = std::max(most, rows.size());
    for (const auto& [id, row] : rows) CHECK(row == expected.at(id));
  }
  CHECK(most > 0);
}

TEST_CASE("a card that is named is never replaced, and by default only with a word") {
  const Tiny t;
  Words automatic = generate(t);
  std::erase(automatic, "--device");
  std::erase(automatic, "cuda");
  for (const auto& [fault, says] :
       std::vector<std::pair<std::string, std::string>>{{"EMU_DRIVER=11040", "needs one for"},
                                                        {"EMU_CODE=0", "was built without code"},
                                                        {"EMU_START=2", "no memory left"}}) {
    check_refused(run_where({fault}, generate(t)), fault == "EMU_START=2" ? 3 : 2, says);
    for (const Words& words : {automatic, automatic + Words{"--device", "auto"}}) {
      const Outcome o = run_where({fault}, words);
      CAPTURE(fault, o.err);
      CHECK(o.code == 0);
      CHECK(o.rows().size() == 6);
      const size_t at = o.err.find("warning: device: cuda cannot be used: ");
      REQUIRE(at != o.err.npos);
      CHECK_THAT(o.err.substr(at, o.err.find('\n', at) - at),
                 Catch::Contains(says) && Catch::EndsWith(" is used"));
    }
  }
  const Outcome none = run_where({"EMU_DEVICES=0"}, automatic);
  CHECK(none.code == 0);
  CHECK_THAT(none.err, !Catch::Contains("cuda"));
}

TEST_CASE("homes that cannot be pinned are announced, and change no token") {
  const Tiny t;
  const Words homes{"--placement", "0,100,0,100,0,100", "--policy", "h2o", "--budget", "50%"};
  const Outcome whole = run_where({}, generate(t, homes));
  CAPTURE(whole.err);
  REQUIRE(whole.code == 0);
  const Outcome o = run_where({"EMU_PIN_KB=64"}, generate(t, homes));
  CAPTURE(o.err);
  CHECK(o.code == 0);
  CHECK_THAT(o.err, Catch::Contains("the system does not pin") &&
                        Catch::Contains("pageable memory takes its place"));
  const auto expected = by_id(whole.rows());
  for (const auto& [id, row] : by_id(o.rows()))
    CHECK(row["token_ids"] == expected.at(id)["token_ids"]);
}

TEST_CASE("bytes that caches move are those predicted, be their homes pinned or not") {
  const Tiny t;
  const auto moved = [&](const std::string& pinned, const std::string& placement) {
    const std::string json = t.work.path() + "/" + pinned + placement + ".json";
    const Words words{"bench",
                      "--device",
                      "cuda",
                      "--model",
                      t.model.path(),
                      "--placement-cache",
                      placement,
                      "--prompt-len",
                      "50",
                      "--output-len",
                      "9",
                      "--batch",
                      "8",
                      "--policy",
                      "full,h2o",
                      "--budget",
                      "50%",
                      "--repeats",
                      "2",
                      "--json",
                      json};
    const Outcome o = run_where({"EMU_PIN_KB=" + pinned}, words);
    CAPTURE(pinned, placement, o.err);
    REQUIRE(o.code == 0);
    CHECK((o.err.find("pageable memory takes its place") != o.err.npos) == (pinned == "64"));
    double to_host = 0;
    const Json document = Json::parse(read_text(json));
    for (const Json& row : document["rows"]) {
      for (const std::string kind : {"cache_to_device", "cache_to_host", "cache_read"})
        CHECK(row[kind + "_bytes_per_step"] == row["predicted_" + kind + "_bytes_per_step"]);
      to_host += row["cache_to_host_bytes_per_step"].get<double>();
    }
    return to_host;
  };
  for (const char* placement : {"0,100", "25,50"})
    CHECK(moved("64", placement) > 2 * moved("100000", placement));
}

TEST_CASE("what is too much for the card or for pinning is refused by name, or announced") {
  const Tiny t;
  check_refused(run_where({"EMU_MEM_MB=0"}, generate(t)), 3, "device");
  // Room for the tiny model is not room for cuBLAS.
  check_refused(run_where({"EMU_MEM_MB=128"}, generate(t)), 3,
                "the device has 0 bytes of memory free");
  const Outcome enough = run_where({"EMU_MEM_MB=176"}, generate(t));
  CAPTURE(enough.err);
  CHECK(enough.code == 0);
  const Outcome hidden = run_where({"EMU_PIN_KB=0"}, generate(t));
  check_refused(hidden, 3, "the system does not pin");
}

TEST_CASE(
    "a card that is full when cuBLAS is first wanted is a lack of memory, with step and layer") {
  const Tiny t;
  std::string prompt = "one";  // more tokens than are multiplied without cuBLAS
  for (int i = 0; i < 4; i++) prompt += " two";
  const Outcome o = run_where({"EMU_BLAS=3"}, {"generate", "--device", "cuda", "--model",
                                               t.model.path(), "--prompt", prompt});
  check_refused(o, 3, "cuBLAS found no memory on the device");
}

TEST_CASE("keys and values are of a type that the card has tensor cores for, unless one is given") {
  const Tiny t;
  const auto says = [&](const char* card, Words more) {
    return run_where({card}, generate(t, std::move(more))).err;
  };
  CHECK_THAT(says("EMU_SM=75", {}), Catch::Contains("cache f16; cuda:0"));
  CHECK_THAT(says("EMU_SM=80", {}), Catch::Contains("cache bf16; cuda:0"));
  CHECK_THAT(says("EMU_SM=75", {"--cache-dtype", "bf16"}), Catch::Contains("cache bf16; cuda:0"));
  CHECK_THAT(says("EMU_SM=75", {"--compute-dtype", "f32"}), Catch::Contains("cache f32; cuda:0"));
}
