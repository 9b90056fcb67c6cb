#include "runtime/model/config_reader.hpp"

#include <catch2/catch.hpp>

#include "runtime/base/json.hpp"
#include "test/support/refusal.hpp"

namespace hydrant::test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("descriptions: values are typed, bounded and named when refused") {
  const Json json = parse_json(
      R"({"n": 12, "whole": 8.0, "half": 0.5, "minus": -1, "huge": 1e300, "t": "gelu_new", "x": "odd",
          "yes": true, "null": null, "ids": [3, 4], "bad_ids": [3, "a"], "o": {"n": "text"}, "zero": 0})",
      "c.json");
  const ConfigReader c(json, "c.json");
  CHECK(c.integer("n", 1, 12) == 12);
  CHECK(c.integer("whole", 1, 12) == 8);
  CHECK(c.integer_or("null", 5, 0, 9) == 5);
  CHECK(c.positive("half") == 0.5);
  CHECK(c.flag_or("yes", false));
  CHECK(c.flag_or("gone", true));
  CHECK(c.ids_or("n", {}) == std::vector<int32_t>{12});
  CHECK(c.ids_or("ids", {}) == std::vector<int32_t>{3, 4});
  CHECK(c.ids_or("gone", {7}) == std::vector<int32_t>{7});
  CHECK(c.activation_or("t", Activation::relu) == Activation::gelu_tanh);
  CHECK(c.activation_or("gone", Activation::silu) == Activation::silu);
  c.refuse_if_set({"zero", "null", "gone"});

  const auto refused = [](auto&& call) { return refusal(Fault::bad_file, call); };
  CHECK(refused([&] { c.integer("n", 1, 11); }) ==
        "c.json: key n is 12, not a whole number from 1 to 11");
  for (const char* key : {"half", "minus", "huge", "t", "yes", "ids"})
    CHECK_THAT(refused([&] { c.integer(key, 0, 100); }), Contains(std::string("key ") + key));
  CHECK(refused([&] { c.integer("gone", 0, 1); }) == "c.json: key gone is missing");
  for (const char* key : {"minus", "zero", "t"})
    CHECK_THAT(refused([&] { c.positive(key); }), Contains("not a positive number"));
  CHECK_THAT(refused([&] { c.ids_or("bad_ids", {}); }), Contains("not a token id"));
  CHECK_THAT(refused([&] { c.ids_or("minus", {}); }), Contains("not a token id"));
  CHECK_THAT(refused([&] { c.flag_or("n", true); }), Contains("not true or false"));
  CHECK_THAT(refused([&] { c.activation_or("x", Activation::relu); }), Contains("known are relu"));
  CHECK_THAT(refused([&] { c.refuse_if_set({"gone", "ids"}); }), Contains("key ids is [3,4]"));
  CHECK_THAT(refused([&] { c.object("o")->integer("n", 0, 1); }), Contains("key o.n is \"text\""));
  CHECK_THAT(refused([&] { c.object("n"); }), Contains("key n is 12, not an object"));
}

TEST_CASE("descriptions: JSON that is damaged, deep or ambiguous is refused") {
  const auto refused = [](const std::string& text) {
    return refusal(Fault::bad_file, [&] { parse_json(text, "c.json"); });
  };
  CHECK_THAT(refused("{\"a\": 1,}"), Contains("c.json: not valid JSON at column 9"));
  CHECK_THAT(refused(""), Contains("not valid JSON"));
  CHECK_THAT(refused("{\"a\": \"\xc3\x28\"}"), Contains("not valid JSON"));
  CHECK_THAT(refused("{\"a\": {\"b\": 1, \"b\": 2}}"), Contains("the key \"b\" occurs twice"));
  CHECK_THAT(refused(std::string(1000000, '[')), Contains("nested deeper"));
  CHECK_THAT(refused(std::string(60, '[') + std::string(60, ']')), Contains("nothing was refused"));
  CHECK_THAT(refused("{\"a\": {\"b\": 1}, \"c\": {\"b\": 2}}"), Contains("nothing was refused"));
}

}  // namespace
}  // namespace hydrant::test
