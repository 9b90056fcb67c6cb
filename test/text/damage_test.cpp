// Damaged and unsupported tokenizer files are refused with the file's name and the place in it.
#include <unistd.h>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>

#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"
#include "runtime/text/tokenizer.hpp"

using namespace hydrant;
using namespace hydrant::text;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("hydrant_text_{}", ::getpid())) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  void write(const char* name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  std::string tokenizer() const { return (path_ / "tokenizer.json").string(); }

 private:
  fs::path path_;
};

Json small() {
  return Json::parse(R"({
    "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
}

std::unique_ptr<Tokenizer> load(std::string_view text) {
  const Folder folder;
  folder.write("tokenizer.json", text);
  return load_tokenizer_json(folder.tokenizer());
}

// The small tokenizer with one place changed.
std::unique_ptr<Tokenizer> with(const char* pointer, const char* value) {
  Json json = small();
  json[Json::json_pointer(pointer)] = Json::parse(value);
  return load(json.dump());
}

std::vector<int32_t> ids(const Tokenizer& t, std::string_view text) { return t.encode(text, true); }

}  // namespace

TEST_CASE("the small tokenizer works before it is damaged") {
  const auto t = load(small().dump());
  CHECK(ids(*t, "ab<s>ba") == std::vector<int32_t>{2, 3, 1, 0});
  CHECK(t->size() == 4);
  CHECK(t->id_of("<s>") == 3);
  CHECK(t->id_of("ab") == 2);
  CHECK_FALSE(t->id_of("ba"));
  CHECK(t->is_special(3));
  CHECK_FALSE(t->is_special(2));
  CHECK(t->decode(std::vector<int32_t>{2, 3, -1, 99, 0}, true) == "aba");
  CHECK(ids(*t, std::string("a\xff\xfe") + "b") == std::vector<int32_t>{0, 1});  // no byte tokens
}

TEST_CASE("a wrong value is named by its path") {
  const auto refused = [](const char* pointer, const char* value, const char* message) {
    INFO(pointer << " = " << value);
    CHECK_THROWS_WITH(with(pointer, value), Contains("tokenizer.json: ") && Contains(message));
  };
  refused("/model/type", "\"Unigram\"", "model.type: \"Unigram\" is not supported; known: BPE");
  refused("/model/vocab", "[[\"a\", 0]]", "model.vocab: expected an object");
  refused("/model/vocab/a", "-1", "model.vocab: the id of \"a\"");
  refused("/model/vocab/a", "1.5", "model.vocab: the id of \"a\"");
  refused("/model/vocab/a", "\"0\"", "model.vocab: the id of \"a\"");
  refused("/model/vocab/a", "{}", "model.vocab: the id of \"a\"");
  refused("/model/vocab/a", "16777216", "the id of \"a\" is 16777216");
  refused("/model/vocab/a", "18446744073709551615", "the id of \"a\" is 18446744073709551615");
  refused("/model/vocab/a", "1", "its id 1 is there twice");
  refused("/model/merges", "{}", "model.merges: expected an array");
  refused("/model/merges/0", "\"ab\"", "model.merges[0]: expected two tokens");
  refused("/model/merges/0", "\"a b c\"", "model.merges[0]: expected two tokens");
  refused("/model/merges/0", "[\"a\"]", "model.merges[0]: expected two tokens");
  refused("/model/merges/0", "[\"a\", \"b\", \"ab\"]", "model.merges[0]: expected two tokens");
  refused("/model/merges/0", "[\"a\", 7]", "model.merges[0]: expected two tokens");
  refused("/model/merges/0", "\"b a\"", "model.merges[0]: \"ba\" is not in the vocabulary");
  refused("/model/merges/0", "\"a c\"", "model.merges[0]: \"c\" is not in the vocabulary");
  refused("/model/dropout", "0.1", "model.dropout: ");
  refused("/model/unk_token", "\"?\"", "model.unk_token: \"?\" is not in the vocabulary");
  refused("/model/fuse_unk", "1", "model.fuse_unk: expected true or false, found 1");
  refused("/added_tokens", "{}", "added_tokens: expected an array");
  refused("/added_tokens/0/id", "-3", "added_tokens[0].id: expected a whole number");
  refused("/added_tokens/0/content", "5", "added_tokens[0].content: expected a string, found 5");
  refused("/normalizer", "{\"type\": \"Precompiled\"}", "normalizer.type: \"Precompiled\"");
  refused("/normalizer", "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"X\"}]}",
          "normalizer.normalizers[0].type: \"X\"");
  refused("/pre_tokenizer", "{\"type\": \"UnicodeScripts\"}", "pre_tokenizer.type: ");
  refused("/pre_tokenizer",
          "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"ByteLevel\"}, {\"type\": "
          "\"WhitespaceSplit\"}]}",
          "pre_tokenizer.pretokenizers[1]: a step after ByteLevel");
  refused("/pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {}, \"behavior\": \"Isolated\"}",
          "pre_tokenizer.pattern: expected {\"String\"");
  refused("/decoder", "{\"type\": \"WordPiece\"}", "decoder.type: \"WordPiece\"");
  refused(
      "/decoder",
      "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, {\"type\": \"ByteLevel\"}]}",
      "decoder.decoders[1]: ");
  refused("/post_processor",
          "{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": \"A\"}}, "
          "{\"SpecialToken\": {\"id\": \"</s>\"}}], \"special_tokens\": {}}",
          "post_processor.single[1].SpecialToken.id: \"</s>\" is not among");
}

TEST_CASE("an expression that cannot be translated is named") {
  const auto split = [](const std::string& regex) {
    const Json json = {
        {"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
    return with("/pre_tokenizer", json.dump().c_str());
  };
  const auto refused = [&](const std::string& regex, const char* message) {
    INFO(regex);
    CHECK_THROWS_WITH(split(regex), Contains("pre_tokenizer.pattern.Regex: ") && Contains(message));
  };
  refused("(", "is not understood");
  refused("[a", "not supported");
  refused("a)", "is not understood");
  refused("[a&&b]", "\"&&\"");
  refused("[a[b]]", "\"[ within [ ]\"");
  refused("(a)\\1", "\"\\1\"");
  refused("\\k<a>", "\"\\k\"");
  refused("(?~a)", "\"(?~\"");
  refused("a(?i)b", "\"(?i)\"");
  refused("(*FAIL)", "\"(*\"");
  refused("\\p{Nonsense}", "is not understood");
  refused("\\xff", "\\xff");
  refused("(?:a{1000}){65000}", "is not understood");
  refused(std::string(400, '(') + std::string(400, ')'), "is not understood");
  refused(std::string(1 << 17, 'a'), "the limit is");
}

TEST_CASE("an expression that would never end gives an error") {
  const Json json = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a|aa)+c"}}}, {"behavior", "Isolated"}};
  const auto t = with("/pre_tokenizer", json.dump().c_str());
  CHECK_THROWS_WITH(t->encode(std::string(400, 'a') + "bc", false), Contains("(a|aa)+c"));
}

TEST_CASE("what is no tokenizer.json at all is refused") {
  CHECK_THROWS_WITH(load_tokenizer_json("/nowhere/tokenizer.json"), Contains("/nowhere/"));
  for (const char* text :
       {"", "{", "[]", "7", "null", "{}", "{\"model\": 3}", "{\"a\": 1e999}",
        "{\"model\": {\"vocab\": {}, \"vocab\": {}}}", "\xff\xfe", "{\"a\": \"\xff\"}"}) {
    INFO(text);
    CHECK_THROWS_WITH(load(text), Contains("tokenizer.json: "));
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":[";
  CHECK_THROWS_WITH(load(deep), Contains("nested more than"));
}

// A number that is cut is another number, and the token it is the id of seems to be there twice.
TEST_CASE("that a file ends early is told, not what seems to follow from it") {
  const std::string whole =
      R"({"model": {"type": "BPE", "vocab": {"a": 1, "b": 12}, "merges": ["a b"]}})";
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    INFO(whole.substr(0, bytes));
    CHECK_THROWS_WITH(load(whole.substr(0, bytes)),
                      Contains(fmt::format("tokenizer.json: not valid JSON at column {}: ",
                                           std::max(bytes + 1, size_t{1}))));
  }
  CHECK_THROWS_WITH(load(R"({"model": {"vocab": {"a": -1}, "vocab": {}}, ])"),
                    Contains("tokenizer.json: not valid JSON at column 46"));
}

TEST_CASE("cut and garbled files never do worse than an error") {
  const std::string path = HYDRANT_TEST_DIR "/text/data/llama-added.tokenizer.json";
  const std::string whole = read_text(path);
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text = whole;
    if (i % 3 == 0) text.resize(random() % text.size());
    for (uint32_t n = 1 + random() % 4; i % 3 != 0 && n > 0; --n) {
      text[random() % text.size()] = char(random() % 256);
    }
    try {
      load(text)->encode("the <s>water\n 123 é", true);
    } catch (const Error& error) {
      ++refused;
      CHECK_THAT(error.what(), Contains("tokenizer.json: "));
    }
  }
  CHECK(refused > 100);  // every cut one
}

TEST_CASE("tokenizer_config.json adds or removes BOS and EOS") {
  const Folder folder;
  folder.write("tokenizer.json", small().dump());
  const auto encoded = [&](const char* config) {
    folder.write("tokenizer_config.json", config);
    return load_tokenizer_json(folder.tokenizer())->encode("ab", true);
  };
  using Ids = std::vector<int32_t>;
  CHECK(encoded("{}") == Ids{2});
  CHECK(encoded(R"({"add_bos_token": true, "bos_token": "<s>"})") == Ids{3, 2});
  CHECK(encoded(R"({"add_bos_token": false, "bos_token": "<s>"})") == Ids{2});
  CHECK(encoded(R"({"add_eos_token": true, "eos_token": {"content": "<s>"}})") == Ids{2, 3});
  CHECK_THROWS_WITH(encoded(R"({"add_bos_token": true, "bos_token": "?"})"),
                    Contains("tokenizer_config.json: bos_token: \"?\" is not in the vocabulary"));
  CHECK_THROWS_WITH(encoded(R"({"add_bos_token": 1})"), Contains("add_bos_token: expected true"));
  CHECK_THROWS_WITH(encoded("{"), Contains("tokenizer_config.json"));

  Json json = small();
  json["post_processor"] =
      Json::parse(R"({"type": "BertProcessing", "sep": ["b", 1], "cls": ["<s>", 3]})");
  folder.write("tokenizer.json", json.dump());
  CHECK(encoded("{}") == Ids{3, 2, 1});
  CHECK(encoded(R"({"add_bos_token": true, "bos_token": "<s>"})") == Ids{3, 2, 1});  // not doubled
  CHECK(encoded(R"({"add_bos_token": false, "bos_token": "<s>"})") == Ids{2, 1});
}

TEST_CASE("long texts of one kind take no quadratic time") {
  const auto t = load_tokenizer_json(HYDRANT_TEST_DIR "/text/data/gpt2.tokenizer.json");
  const auto s = load_tokenizer_json(HYDRANT_TEST_DIR "/text/data/llama.tokenizer.json");
  for (const char* part : {"a", " ", "the ", "é", "1", "\n", "\xcc\x81", "<", "▁"}) {
    std::string text;
    while (text.size() < 100'000) text += part;
    INFO(part);
    CHECK(t->decode(t->encode(text, false), false) == text);
    const std::string back = s->decode(s->encode(text, false), false);
    CHECK(back == (std::string_view(part) == "▁" ? std::string(text.size() / 3, ' ') : text));
  }
}

TEST_CASE("expressions mean what they mean in Oniguruma") {
  const auto pieces = [](const std::string& regex, const std::string& text) {
    Json json = small();
    json["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Removed"}};
    json["model"]["unk_token"] = "ab";  // one for each character that is left
    return load(json.dump())->encode(text, false).size();
  };
  CHECK(pieces("\\s", "x\u180Ey\u3000\u0085z") == 4);  // U+180E is no space
  CHECK(pieces("\\w", "x\u00B2\u0301_-+") == 2);       // superscripts and marks are of words
  CHECK(pieces("\\p{Han}", "\u3001\u4E2D") == 1);      // a script without its extensions
  CHECK(pieces("x{2}+y", "xxxxy") == 0);               // repeats, is not possessive
  CHECK(pieces("x{,2}y", "xxxy") == 1);                // from 0
  CHECK(pieces("^y$", "x\ny\nz") == 4);                // at each line
  CHECK(pieces("(?m:x.)", "x\ny") == 1);               // m: the dot takes a newline
  CHECK(pieces("(?i)\u017F", "sS") == 0);              // long s folds to s
  CHECK(pieces("\\h", "fg") == 1);                     // a hexadecimal digit
}
