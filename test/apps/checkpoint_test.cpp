// A checkpoint and a description that do not fit together.
#include <catch2/catch.hpp>
#include <cstring>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"
#include "test/support/checkpoint_writer.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

// A safetensors file taken apart.
struct Stored {
  explicit Stored(const std::string& bytes) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    header = Json::parse(bytes.substr(8, length));
    data = bytes.substr(8 + length);
  }
  // A tensor like `model`, its bytes after all others.
  void add(const std::string& name, const std::string& model, const std::string& bytes) {
    header[name] = header[model];
    header[name]["data_offsets"] = {data.size(), data.size() + bytes.size()};
    data += bytes;
  }
  std::string bytes_of(const std::string& name) const {
    const size_t begin = header[name]["data_offsets"][0], end = header[name]["data_offsets"][1];
    return data.substr(begin, end - begin);
  }
  std::string bytes() const { return safetensors_bytes(header.dump(), data); }

  Json header;
  std::string data;
};

struct Rewritten : Tiny {
  Stored stored() const { return Stored(original); }
  void describe(const std::string& key, const Json& value) const {
    Json edited = Json::parse(config);
    edited[key] = value;
    model.write("config.json", edited.dump());
  }
  Outcome run(const std::string& bytes) const {
    model.write("model.safetensors", bytes);
    return hydrant_run({"generate", "--model", model.path(), "--prompt", "abc", "--max-new-tokens",
                        "4", "--ignore-eos", "--policy", "full"});
  }
  std::string original = read_text(model.file("model.safetensors")),
              config = read_text(model.file("config.json"));
};

constexpr const char* kTokens = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

}  // namespace

TEST_CASE("a tensor whose entry is lost is named, whichever it is") {
  const Rewritten t;
  const Stored whole = t.stored();
  for (const auto& [name, entry] : whole.header.items()) {
    if (name == "__metadata__") continue;
    Stored lacking = whole;
    lacking.header.erase(name);
    check_refused(t.run(lacking.bytes()), 2, "tensor " + name + " is missing");
  }
  Stored more = whole;
  more.data += "more";
  check_refused(t.run(more.bytes()), 2, "model.safetensors: its tensors end at byte");
}

TEST_CASE("layers that the description leaves out are refused, other tensors only warned of") {
  const Rewritten t;
  t.describe("num_hidden_layers", 1);
  check_refused(t.run(t.original), 2,
                "tensor model.layers.1.input_layernorm.weight is of a layer beyond the 1");
  t.describe("num_hidden_layers", 2);
  Stored more = t.stored();
  more.add("model.layers.1.extra", "model.norm.weight", more.bytes_of("model.norm.weight"));
  const Outcome o = t.run(more.bytes());
  CHECK(o.code == 0);
  CHECK_THAT(o.err, Catch::Contains("no use for: 1, the first is model.layers.1.extra"));
}

TEST_CASE("a head that the description ties and the file does not is warned of and not used") {
  const Rewritten t;
  const Outcome tied = t.run(t.original);
  const auto with_head = [&](const std::string& bytes) {
    Stored stored = t.stored();
    stored.add(kHead, kTokens, bytes);
    return t.run(stored.bytes());
  };
  const std::string tokens = t.stored().bytes_of(kTokens);
  const Outcome same = with_head(tokens);
  CHECK(same.out == tied.out);
  CHECK_THAT(same.err, !Catch::Contains("warning"));
  std::string last = tokens;  // differs in its last value alone
  last[last.size() - 2] ^= 1;
  const Outcome other = with_head(last);
  CHECK(other.code == 0);
  CHECK(other.out == tied.out);
  CHECK_THAT(other.err,
             Catch::Contains("warning") && Catch::Contains("tensor lm_head.weight differs from "
                                                           "model.embed_tokens.weight"));
  t.describe("tie_word_embeddings", false);
  const Outcome untied = with_head(std::string(tokens.rbegin(), tokens.rend()));
  CHECK_THAT(untied.err, !Catch::Contains("differs from"));
}
