#include "runtime/model/gguf.hpp"

#include <catch2/catch.hpp>

#include "runtime/base/json.hpp"
#include "test/support/checkpoint_writer.hpp"
#include "test/support/refusal.hpp"
#include "test/support/temporary_folder.hpp"

namespace hydrant::test {
namespace {

using Catch::Matchers::Contains;

GgufHeader opened(const TemporaryFolder& folder, std::string_view bytes) {
  return read_gguf_header(File(folder.write("m.gguf", bytes)));
}
std::string refused(const TemporaryFolder& folder, std::string_view bytes) {
  const std::string text = refusal(Fault::bad_file, [&] { opened(folder, bytes); });
  CHECK_THAT(text, Contains("m.gguf"));
  return text;
}
const StoredTensor& tensor(const GgufHeader& header, std::string_view name) {
  for (const StoredTensor& t : header.tensors)
    if (t.name == name) return t;
  throw std::out_of_range(std::string(name));
}

GgufWriter example() {
  GgufWriter w;
  w.text("general.architecture", "llama");
  w.integer("llama.block_count", 2);
  w.real("llama.rope.freq_base", 5e5f);
  w.text("tokenizer.ggml.model", "gpt2");
  w.texts("tokenizer.ggml.tokens", {"a", "b", "\xff"});
  w.reals("tokenizer.ggml.scores", {0, -1, -2});
  w.integers("tokenizer.ggml.token_type", {1, 1, 3});
  w.texts("tokenizer.ggml.merges", {"a b"});
  w.integer("tokenizer.ggml.eos_token_id", 2);
  w.flag("tokenizer.ggml.add_bos_token", false);
  w.integers("some.list", {4, 5});
  w.tensor({"w", "q8_0", {2, 64}, std::string(2 * 2 * 34, '\0')});
  w.tensor({"k", "q4_k", {1, 256}, std::string(144, '\0')});
  w.tensor({"v", "f32", {3}, std::string(12, '\0')});
  return w;
}

TEST_CASE("GGUF: metadata, vocabulary and tensors, in both versions and other alignments") {
  const TemporaryFolder folder;
  const uint32_t version = GENERATE(2u, 3u);
  const uint64_t alignment = GENERATE(uint64_t{8}, uint64_t{32}, uint64_t{128});
  GgufWriter w = example();
  w.version = version;
  w.alignment = alignment;
  w.integer("general.alignment", uint32_t(alignment));
  const GgufHeader h = opened(folder, w.bytes());

  const Json& m = *h.metadata;
  CHECK(m["general.architecture"] == "llama");
  CHECK(m["llama.block_count"] == 2);
  CHECK(m["llama.rope.freq_base"] == 5e5);
  CHECK(m["some.list"] == Json({4, 5}));
  CHECK_FALSE(m.contains("tokenizer.ggml.tokens"));
  CHECK(h.tokenizer.model == "gpt2");
  CHECK(h.tokenizer.tokens == std::vector<std::string>{"a", "b", "\xff"});
  CHECK(h.tokenizer.scores == std::vector<float>{0, -1, -2});
  CHECK(h.tokenizer.types == std::vector<int32_t>{1, 1, 3});
  CHECK(h.tokenizer.merges == std::vector<std::string>{"a b"});
  CHECK(h.tokenizer.bos == -1);
  CHECK(h.tokenizer.ends() == std::vector<int32_t>{2});
  CHECK(h.tokenizer.add_bos == false);
  CHECK_FALSE(h.tokenizer.add_eos);

  const uint64_t begin = (w.head().size() + alignment - 1) / alignment * alignment;
  CHECK(tensor(h, "w").shape == std::vector<int64_t>{2, 64});
  CHECK(tensor(h, "w").rows == 2);
  CHECK(tensor(h, "w").columns == 64);
  CHECK(tensor(h, "w").dtype == DType::q8_0);
  CHECK(tensor(h, "w").offset == begin);
  CHECK(tensor(h, "w").bytes == 136);
  CHECK(tensor(h, "k").offset == begin + (136 + alignment - 1) / alignment * alignment);
  CHECK(tensor(h, "v").shape == std::vector<int64_t>{3});
}

TEST_CASE("GGUF: every cut is refused") {
  const TemporaryFolder folder;
  const std::string whole = example().bytes();
  const size_t padding = 32 - 12;  // behind the last tensor, which may be missing
  for (size_t length = 0; length < whole.size() - padding; length += length < 900 ? 1 : 7)
    if (refused(folder, whole.substr(0, length)) == "nothing was refused")
      FAIL("a file cut to " << length << " bytes was read");
  CHECK(refusal(Fault::bad_file, [&] {
          opened(folder, whole.substr(0, whole.size() - padding));
        }) == "nothing was refused");
  CHECK_THAT(refused(folder, whole + "x"), Contains("its tensors end at byte"));
}

TEST_CASE("GGUF: damaged heads are refused") {
  const TemporaryFolder folder;
  const auto head = [](uint64_t tensors, uint64_t keys, std::string_view rest) {
    return GgufWriter::preamble(3, tensors, keys).append(rest).append(4096, '\0');
  };
  const auto key = [](std::string_view name, uint32_t type, std::string_view value) {
    std::string bytes = GgufWriter::counted(name);
    append(bytes, type);
    return bytes.append(value);
  };
  const auto number = [](auto value) {
    std::string bytes;
    append(bytes, value);
    return bytes;
  };
  const auto info = GgufWriter::info;
  const std::string text = GgufWriter::counted("t"), f32 = number(uint32_t{6});
  const uint64_t huge = ~uint64_t{0};
  struct Damage {
    std::string bytes, expected;
  };
  const std::vector<Damage> damages{
      {"GGML" + std::string(100, '\0'), "not a GGUF file"},
      {GgufWriter::preamble(1, 0, 0), "GGUF version 1; versions 2 and 3 are read"},
      {GgufWriter::preamble(0x03000000, 0, 0), "big-endian"},
      {head(huge, 0, ""), "number of tensors counts 18446744073709551615"},
      {head(0, huge, ""), "number of keys counts 18446744073709551615"},
      {head(0, 1, number(huge)), "a key counts 18446744073709551615"},
      {head(0, 1, key("k", 13, "")), "key k has type 13"},
      {head(0, 1, key("k", 8, number(huge))), "key k counts"},
      {head(0, 1, key("k", 9, f32 + number(huge))), "key k counts"},
      {head(0, 1, key("k", 9, f32 + number(uint64_t{1} << 62))), "key k counts"},
      {head(0, 1, key("k", 9, number(uint32_t{9}) + number(uint64_t{1}))), "array of arrays"},
      {head(0, 2, key("k", 7, "\1") + key("k", 7, "\1")), "key k occurs twice"},
      {head(0, 1, key("tokenizer.ggml.tokens", 9, f32 + number(uint64_t{1}) + f32)),
       "tokenizer.ggml.tokens is an array of type 6"},
      {head(0, 1,
            key("tokenizer.ggml.scores", 9, number(uint32_t{8}) + number(uint64_t{1}) + text)),
       "tokenizer.ggml.scores is an array of type 8"},
      {head(0, 1, key("tokenizer.ggml.eos_token_id", 5, number(int32_t{-1}))),
       "tokenizer.ggml.eos_token_id is not a token id"},
      {head(0, 1, key("tokenizer.ggml.model", 4, number(uint32_t{1}))),
       "tokenizer.ggml.model is not a text"},
      {head(0, 1, key("general.alignment", 4, number(uint32_t{0}))), "general.alignment is 0"},
      {head(0, 1, key("general.alignment", 4, number(uint32_t{24}))), "general.alignment is 24"},
      {head(0, 1, key("general.alignment", 8, text)), "general.alignment is \"t\""},
      {head(1, 0, info("a", {}, 0, 0)), "tensor a has 0 extents"},
      {head(1, 0, info("a", {1, 1, 1, 1, 1}, 0, 0)), "tensor a has 5 extents"},
      {head(1, 0, info("a", {0}, 0, 0)), "tensor a has an extent of 0"},
      {head(1, 0, info("a", {huge}, 0, 0)), "tensor a has an extent of"},
      {head(1, 0, info("a", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0)), "overflows"},
      {head(1, 0, info("a", {uint64_t{1} << 62}, 0, 0)), "overflows"},
      {head(1, 0, info("a", {4}, 13, 0)), "tensor a has type 13 (q5_k)"},
      {head(1, 0, info("a", {4}, 999, 0)), "tensor a has type 999 (unknown)"},
      {head(1, 0, info("a", {33, 1}, 8, 0)), "rows of 33 elements are not whole blocks of 32"},
      {head(1, 0, info("a", {128}, 12, 0)), "rows of 128 elements are not whole blocks of 256"},
      {head(1, 0, info("a", {4}, 0, 4)), "tensor a lies at 4"},
      {head(1, 0, info("a", {4}, 0, 1 << 20)), "tensor a needs 16 bytes at"},
      {head(1, 0, info("a", {4}, 0, huge - 31)), "tensor a needs 16 bytes at"},
      {head(1, 0, info("a", {1 << 20}, 0, 0)), "tensor a needs 4194304 bytes at"},
      {head(2, 0, info("a", {16}, 0, 0) + info("b", {4}, 0, 32)), "tensor b overlaps tensor a"},
  };
  for (const Damage& d : damages) {
    INFO(d.expected);
    CHECK_THAT(refused(folder, d.bytes), Contains(d.expected));
  }
}

TEST_CASE("GGUF: a name twice is refused when the checkpoint is put together") {
  const TemporaryFolder folder;
  GgufWriter w;
  w.tensor({"a", "f32", {8}, std::string(32, '\0')});
  w.tensor({"a", "f32", {8}, std::string(32, '\0')});
  std::vector<File> files;
  files.emplace_back(folder.write("m.gguf", w.bytes()));
  GgufHeader h = read_gguf_header(files.front());
  CHECK_THAT(refusal(Fault::bad_file, [&] { Checkpoint(std::move(files), std::move(h.tensors)); }),
             Contains("tensor a occurs twice"));
}

TEST_CASE("GGUF: a long array that is no vocabulary is passed over") {
  const TemporaryFolder folder;
  GgufWriter w;
  w.integers("long", std::vector<int32_t>(70000, 1));
  w.integer("after", 7);
  const GgufHeader h = opened(folder, w.bytes());
  CHECK_FALSE(h.metadata->contains("long"));
  CHECK((*h.metadata)["after"] == 7);
}

}  // namespace
}  // namespace hydrant::test
