#include <catch2/catch.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"
#include "runtime/text/tokenizer.hpp"

using namespace hydrant;
using namespace hydrant::text;
using Catch::Contains;
using Ids = std::vector<int32_t>;

namespace {

// What a converter writes for a tokenizer.json: tokens, types, merges.
GgufVocabulary converted(const std::string& name) {
  const Json json =
      Json::parse(read_text(HYDRANT_TEST_DIR "/text/data/" + name + ".tokenizer.json"));
  GgufVocabulary out;
  out.file = "model.gguf";
  out.model = "gpt2";
  const auto put = [&](const std::string& token, size_t id, int32_t type) {
    if (id >= out.tokens.size()) {
      out.tokens.resize(id + 1);
      out.types.resize(id + 1);
    }
    out.tokens[id] = token;
    out.types[id] = type;
  };
  for (const auto& [token, id] : json["model"]["vocab"].items()) put(token, id, 1);
  for (const Json& t : json["added_tokens"]) put(t["content"], t["id"], t["special"] ? 3 : 4);
  for (const Json& m : json["model"]["merges"]) {
    out.merges.push_back(m.is_string() ? m.get<std::string>()
                                       : m[0].get<std::string>() + " " + m[1].get<std::string>());
  }
  return out;
}

GgufVocabulary scored() {
  GgufVocabulary v;
  v.file = "model.gguf";
  v.model = "llama";
  const auto put = [&](std::string token, float score, int32_t type) {
    v.tokens.push_back(std::move(token));
    v.scores.push_back(score);
    v.types.push_back(type);
  };
  put("<unk>", 0, 2);
  put("<s>", 0, 3);
  put("</s>", 0, 3);
  put("<0xC3>", 0, 6);
  put("<0xA9>", 0, 6);
  put("▁", -10, 1);
  put("a", -11, 1);
  put("b", -12, 1);
  put("ab", -2, 1);
  put("aa", -1, 1);
  put("▁a", -3, 1);
  put("<user>", 0, 4);
  put("bb", -1, 5);  // unused: never made
  v.bos = 1;
  v.eos = 2;
  v.unknown = 0;
  return v;
}

}  // namespace

TEST_CASE("byte-level GGUF vocabularies give the ids of the tokenizer.json they come from") {
  const std::vector<std::pair<std::string, std::string>> models = {
      {"gpt2", "gpt-2"}, {"llama3", "llama-bpe"}, {"smollm", "smollm"}};
  for (const auto& [name, pre] : models) {
    GgufVocabulary v = converted(name);
    v.pre = pre;
    const auto tokenizer = make_gguf_tokenizer(std::move(v));
    CHECK(tokenizer->kind() == "byte-level BPE");
    const Json cases =
        Json::parse(read_text(HYDRANT_TEST_DIR "/text/data/" + name + ".cases.json"));
    for (const Json& c : cases) {
      if (!c.contains("text")) continue;
      INFO(name << " " << c.dump());
      CHECK(tokenizer->encode(c["text"].get<std::string>(), false) ==
            c.value("plain", c["ids"]).get<Ids>());
    }
  }
}

TEST_CASE("scores decide merges, the best first, then the leftmost") {
  const auto t = make_gguf_tokenizer(scored());
  CHECK(t->kind() == "SentencePiece BPE");
  CHECK(t->encode("aab", false) == Ids{5, 9, 7});       // aa before ab and before ▁a
  CHECK(t->encode("aaa", false) == Ids{5, 9, 6});       // the left one of two aa
  CHECK(t->encode("ab", true) == Ids{1, 5, 8});         // ab before ▁a
  CHECK(t->encode("a bb", false) == Ids{10, 5, 7, 7});  // bb is unused
  CHECK(t->encode("é", false) == Ids{5, 3, 4});
  CHECK(t->encode("\xe6\x97\xa5", false) == Ids{5, 0});  // no token for its bytes
  CHECK(t->encode("a</s>b<user>", false) == Ids{10, 2, 5, 7, 11});
  CHECK(t->decode(Ids{1, 10, 3, 4, 5, 7, 11}, true) == "aé b<user>");
  CHECK(t->decode(Ids{3, 3, 4}, true) == "\uFFFD\uFFFD\uFFFD");
  CHECK(t->is_byte(3));
  CHECK_FALSE(t->is_byte(5));
}

TEST_CASE("BOS, EOS and the leading space follow the file, else llama.cpp's defaults") {
  GgufVocabulary v = scored();
  v.add_bos = false;
  v.add_eos = true;
  v.add_space_prefix = false;
  const auto t = make_gguf_tokenizer(v);
  CHECK(t->encode("ab", true) == Ids{8, 2});
  CHECK(t->decode(Ids{10}, true) == " a");

  GgufVocabulary gpt2 = converted("gpt2");
  gpt2.pre = "gpt-2";
  gpt2.bos = 0;
  CHECK(make_gguf_tokenizer(gpt2)->encode("", true).empty());
  gpt2.pre = "llama3";
  CHECK(make_gguf_tokenizer(gpt2)->encode("", true) == Ids{0});
}

TEST_CASE("damaged GGUF vocabularies are refused by file and key") {
  const auto refused = [](auto change, const char* message) {
    GgufVocabulary v = scored();
    change(v);
    CHECK_THROWS_WITH(make_gguf_tokenizer(v), Contains("model.gguf: ") && Contains(message));
  };
  refused([](auto& v) { v.model = "t5"; }, "tokenizer.ggml.model: \"t5\" is not supported");
  refused([](auto& v) { v.model = "gpt2", v.pre = "tekken"; },
          "tokenizer.ggml.pre: \"tekken\" is not supported; known: default, gpt-2");
  refused([](auto& v) { v.tokens.clear(); }, "tokens: 0 entries");
  refused([](auto& v) { v.types.pop_back(); }, "token_type: 12 entries, but there are 13");
  refused([](auto& v) { v.scores.push_back(1); }, "scores: 14 entries, but there are 13");
  refused([](auto& v) { v.scores.clear(); }, "scores is missing");
  refused([](auto& v) { v.bos = 13; }, "bos_token_id: 13");
  refused([](auto& v) { v.tokens[5] = "\xff"; }, "tokens[5] is not valid UTF-8");
  refused([](auto& v) { v.model = "gpt2", v.pre = "gpt-2", v.merges = {"ab"}; }, "merges[0]");
  refused([](auto& v) { v.model = "gpt2", v.pre = "gpt-2", v.merges = {"a x"}; }, "\"x\"");
}
