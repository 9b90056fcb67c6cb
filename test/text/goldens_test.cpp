// Against Hugging Face's tokenizers: data written by scripts/make_tokenizer_goldens.py.
#include <catch2/catch.hpp>

#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"
#include "runtime/text/stream_decoder.hpp"
#include "runtime/text/tokenizer.hpp"
#include "runtime/text/utf8.hpp"

using namespace hydrant;
using namespace hydrant::text;

namespace {

const std::string kData = HYDRANT_TEST_DIR "/text/data/";

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {"gpt2",
                                               "opt",
                                               "roberta",
                                               "neox",
                                               "llama3",
                                               "o200k",
                                               "smollm",
                                               "deepseek",
                                               "added",
                                               "suffix",
                                               "llama",
                                               "prefix",
                                               "metaspace-first",
                                               "metaspace-always",
                                               "metaspace-never",
                                               "llama-added",
                                               "whitespace",
                                               "behaviors"};
  return all;
}

// How many U+FFFD stand for a run of broken bytes is left open.
std::string with_runs_joined(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool broken = text.compare(i, kReplacement.size(), kReplacement) == 0;
    const size_t size = broken ? kReplacement.size() : 1;
    if (!broken || !out.ends_with(kReplacement)) out += text.substr(i, size);
    i += size;
  }
  return out;
}

}  // namespace

TEST_CASE("ids and texts are those of Hugging Face") {
  for (const std::string& name : names()) {
    const auto tokenizer = load_tokenizer_json(kData + name + ".tokenizer.json");
    const Json cases = Json::parse(read_text(kData + name + ".cases.json"));
    REQUIRE(cases.size() > 150);
    for (const Json& c : cases) {
      INFO(name << " " << c.dump());
      const auto ids = c["ids"].get<std::vector<int32_t>>();
      std::string decoded = c.value("decoded", "");
      if (c.contains("text")) {
        const std::string text = c["text"];
        if (!c.contains("decoded")) decoded = text;
        CHECK(tokenizer->encode(text, true) == ids);
        CHECK(tokenizer->encode(text, false) == c.value("plain", ids));
      }
      CHECK(with_runs_joined(tokenizer->decode(ids, true)) == with_runs_joined(decoded));
      CHECK(with_runs_joined(tokenizer->decode(ids, false)) ==
            with_runs_joined(c.value("with_special", decoded)));
    }
  }
}

// Rule: the text after a prompt is decode(prompt + new) without decode(prompt), wherever the second
// is a beginning of the first.
TEST_CASE("a stream is valid at each chunk and joins to the whole text") {
  for (const std::string& name : names()) {
    const auto tokenizer = load_tokenizer_json(kData + name + ".tokenizer.json");
    const Json cases = Json::parse(read_text(kData + name + ".cases.json"));
    for (const Json& c : cases) {
      const auto ids = c["ids"].get<std::vector<int32_t>>();
      for (size_t cut = 0; cut <= std::min<size_t>(ids.size(), 6); ++cut) {
        INFO(name << " " << c.dump() << " cut at " << cut);
        const std::span<const int32_t> prompt = std::span(ids).first(cut);
        const std::span<const int32_t> rest = std::span(ids).subspan(cut);
        StreamDecoder stream(*tokenizer, prompt);
        std::string joined;
        for (const int32_t id : rest) {
          const std::string chunk = stream.push(id);
          CHECK(is_utf8(chunk));
          joined += chunk;
        }
        joined += stream.finish();
        CHECK(joined == text_after(*tokenizer, prompt, rest));
        const std::string whole = tokenizer->decode(ids, true);
        const std::string before = tokenizer->decode(prompt, true);
        if (whole.starts_with(before)) {
          CHECK(with_runs_joined(before + joined) == with_runs_joined(whole));
        } else {
          CHECK(with_runs_joined(joined) == with_runs_joined(tokenizer->decode(rest, true)));
        }
      }
    }
  }
}
