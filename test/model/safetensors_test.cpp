#include "runtime/model/safetensors.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "test/support/checkpoint_writer.hpp"
#include "test/support/refusal.hpp"
#include "test/support/temporary_folder.hpp"

namespace hydrant::test {
namespace {

using Catch::Matchers::Contains;

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

std::string header(const std::vector<std::string>& entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

std::string refused(const TemporaryFolder& folder, std::string_view bytes) {
  const std::string path = folder.write("model.safetensors", bytes);
  const std::string text = refusal(Fault::bad_file, [&] { open_safetensors(folder.path()); });
  CHECK_THAT(text, Contains("model.safetensors"));
  return text;
}

TEST_CASE("safetensors: tensors of all types are found and their rows read") {
  const TemporaryFolder folder;
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  folder.write("model.safetensors",
               safetensors_bytes({f32_tensor("w", {3, 2}, values),
                                  {"h", "F16", {2}, std::string(4, '\x11')},
                                  {"b", "BF16", {1, 1, 2}, std::string(4, '\x22')},
                                  {"mask", "BOOL", {2, 2}, std::string(4, '\1')},
                                  {"scalar", "I64", {}, std::string(8, '\0')},
                                  {"none", "F32", {0, 4}, ""}}));
  const Checkpoint c = open_safetensors(folder.path());
  REQUIRE(c.tensors().size() == 6);
  const StoredTensor* w = c.find("w");
  REQUIRE(w);
  CHECK(w->dtype == DType::f32);
  CHECK(w->rows == 3);
  CHECK(w->columns == 2);
  std::vector<float> rows(4);
  c.read_rows(*w, 1, 2, reinterpret_cast<std::byte*>(rows.data()));
  CHECK(rows == std::vector<float>{3, 4, 5, 6});
  CHECK(c.find("h")->dtype == DType::f16);
  CHECK(c.find("b")->dtype == DType::bf16);
  CHECK(c.find("b")->rows == 1);
  CHECK_FALSE(c.find("mask")->dtype);
  CHECK(c.find("mask")->type_name == "BOOL");
  CHECK(c.find("scalar")->bytes == 8);
  CHECK(c.find("none")->rows == 0);
  CHECK(c.find("W") == nullptr);
  CHECK(c.bytes() == 24 + 4 + 4 + 4 + 8);
}

TEST_CASE("safetensors: a file of another length than its header says is refused") {
  const TemporaryFolder folder;
  const std::string whole = safetensors_bytes(
      {f32_tensor("first", {4}, {1, 2, 3, 4}), f32_tensor("second", {4}, {1, 2, 3, 4})});
  CHECK_THAT(refused(folder, whole.substr(0, whole.size() - 1)), Contains("second"));
  CHECK_THAT(refused(folder, whole.substr(0, whole.size() - 20)), Contains("tensor "));
  CHECK_THAT(refused(folder, whole.substr(0, whole.size() / 2)), Contains("header of"));
  CHECK_THAT(refused(folder, whole.substr(0, 7)), Contains("header's length"));
  CHECK_THAT(refused(folder, ""), Contains("header's length"));
}

TEST_CASE("safetensors: damaged headers are refused, naming the tensor") {
  const TemporaryFolder folder;
  const std::string data(16, '\0');
  struct Damage {
    std::string header, expected;
  };
  const std::vector<Damage> damages{
      {"{", "not valid JSON"},
      {"[]", "not an object"},
      {"{\"a\":\xff}", "not valid JSON"},
      {std::string(100000, '['), "nested deeper"},
      {"{\"a\":[]}", "tensor a: its entry is not an object"},
      {"{\"a\":{}}", "tensor a: no dtype"},
      {header({entry("a", "F32", "[4]", "[0,16]"), entry("a", "F32", "[4]", "[0,16]")}),
       "occurs twice"},
      {header({entry("a", "F4", "[4]", "[0,16]")}), "tensor a: unknown dtype \"F4\""},
      {header({entry("a", "F32", "[-4]", "[0,16]")}), "tensor a: shape is [-4]"},
      {header({entry("a", "F32", "[4.5]", "[0,16]")}), "tensor a: shape is [4.5]"},
      {header({entry("a", "F32", "4", "[0,16]")}), "tensor a: shape is 4"},
      {header({entry("a", "F32", "[1,1,1,1,1,1,1,1,4]", "[0,16]")}), "tensor a: shape is"},
      {header({entry("a", "F32", "[3]", "[0,16]")}), "tensor a: shape [3] of F32"},
      {header({entry("a", "F16", "[4]", "[0,16]")}), "tensor a: shape [4] of F16"},
      // 2^62 elements of 4 bytes are 0 bytes modulo 2^64; 2^32 x 2^32 elements are 0 modulo 2^64
      {header({entry("a", "F32", "[4611686018427387904]", "[0,0]")}), "tensor a: shape"},
      {header({entry("a", "F32", "[4294967296,4294967296]", "[0,0]")}), "tensor a: shape"},
      {header({entry("a", "F32", "[18446744073709551615]", "[0,16]")}), "tensor a: shape holds"},
      {header({entry("a", "F32", "[99999999999999999999]", "[0,16]")}), "tensor a: shape is"},
      {header({entry("a", "F32", "[4]", "[16,0]")}), "tensor a: data_offsets [16,0]"},
      {header({entry("a", "F32", "[4]", "[-16,0]")}), "tensor a: data_offsets is [-16,0]"},
      {header({entry("a", "F32", "[4]", "[0,17]")}), "tensor a: data_offsets [0,17]"},
      {header({entry("a", "F32", "[4]", "[16]")}), "tensor a: data_offsets [16]"},
      {header({entry("a", "F32", "[4]", "[0,18446744073709551615]")}), "tensor a: data_offsets"},
      {header({entry("a", "F32", "[3]", "[0,12]"), entry("b", "F32", "[2]", "[8,16]")}),
       "tensor b begins at byte"},
      {header({entry("a\\nb\\u0000", "F32", "[3]", "[0,16]")}), "tensor a?b?: shape"},
  };
  for (const Damage& d : damages) {
    INFO(d.header.substr(0, 200));
    CHECK_THAT(refused(folder, safetensors_bytes(d.header, data)), Contains(d.expected));
  }
  std::string huge;
  append(huge, ~uint64_t{0});
  CHECK_THAT(refused(folder, huge + "{}"), Contains("header of 18446744073709551615 bytes"));
}

TEST_CASE("safetensors: bytes of no tensor are told of") {
  const TemporaryFolder folder;
  const std::string data(16, '\0');
  const auto hole = [&](const std::string& bytes) {
    folder.write("model.safetensors", bytes);
    return open_safetensors(folder.path()).hole();
  };
  const std::string whole = header({entry("a", "F32", "[4]", "[0,16]")});
  CHECK(hole(safetensors_bytes(whole, data)).empty());
  CHECK_THAT(hole(safetensors_bytes(whole, data) + "x"),
             Contains("model.safetensors: its tensors end at byte") && Contains("the file has"));
  CHECK_THAT(hole(safetensors_bytes(header({entry("a", "F32", "[2]", "[0,8]")}), data)),
             Contains("its tensors end at byte"));
  CHECK_THAT(hole(safetensors_bytes(header({entry("b", "F32", "[2]", "[8,16]")}), data)),
             Contains("tensor b begins at byte"));
  CHECK_THAT(
      hole(safetensors_bytes(
          header({entry("a", "F32", "[1]", "[0,4]"), entry("b", "F32", "[1]", "[8,12]")}), data)),
      Contains("tensor b begins at byte"));  // the first of two
}

TEST_CASE("safetensors: shards and their index") {
  const TemporaryFolder folder;
  const auto index = [&](std::string_view map) {
    folder.write("model.safetensors.index.json", fmt::format(R"({{"weight_map":{}}})", map));
    return refusal(Fault::bad_file, [&] { open_safetensors(folder.path()); });
  };
  CHECK_THAT(refusal(Fault::bad_file, [&] { open_safetensors(folder.path()); }),
             Contains("model.safetensors.index.json"));
  folder.write("one.safetensors", safetensors_bytes({f32_tensor("a", {1}, {1})}));
  folder.write("two.safetensors", safetensors_bytes({f32_tensor("b", {1}, {2})}));

  CHECK(index(R"({"a":"one.safetensors","b":"two.safetensors"})") == "nothing was refused");
  const Checkpoint c = open_safetensors(folder.path());
  float value = 0;
  c.read_rows(*c.find("b"), 0, 1, reinterpret_cast<std::byte*>(&value));
  CHECK(value == 2);
  CHECK(c.path_of(*c.find("b")) == folder.file("two.safetensors"));

  CHECK_THAT(index(R"({"a":"one.safetensors","b":"gone.safetensors"})"),
             Contains("gone.safetensors"));
  CHECK_THAT(index(R"({"a":"one.safetensors","b":"one.safetensors"})"),
             Contains("tensor b is said to be in one.safetensors"));
  CHECK_THAT(index(R"({"a":"two.safetensors","b":"one.safetensors"})"), Contains("tensor a"));
  CHECK_THAT(index(R"({"a":"../one.safetensors"})"), Contains("not a file name"));
  CHECK_THAT(index(R"({"a":".."})"), Contains("not a file name"));
  CHECK_THAT(index(R"({"a":""})"), Contains("not a file name"));
  CHECK_THAT(index(R"({"a":3})"), Contains("not a file name"));
  CHECK_THAT(index("{}"), Contains("weight_map"));
  CHECK_THAT(index("7"), Contains("weight_map"));
  folder.write("two.safetensors", safetensors_bytes({f32_tensor("a", {1}, {2})}));
  CHECK_THAT(index(R"({"a":"one.safetensors","b":"two.safetensors"})"),
             Contains("tensor a occurs twice"));
}

}  // namespace
}  // namespace hydrant::test
