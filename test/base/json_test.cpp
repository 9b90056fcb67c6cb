// Text of others: where it is wrong, and numbers as they were spelled.
#include "runtime/base/json.hpp"

#include <catch2/catch.hpp>

#include "test/support/refusal.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("a text that is no JSON is refused with its place, whatever is wrong with it") {
  struct Case {
    std::string text, says;
  };
  for (const Case& c : std::vector<Case>{
           {"", "f: not valid JSON at column 1: "},
           {"{\"a\": 1,}", "f: not valid JSON at column 9: "},
           {"{\"a\": 1,}\n", "f: not valid JSON at column 9: "},
           {"{\"a\": 1e999}", "f: not valid JSON at column 11: number overflow parsing '1e999'"},
           {"{\n \"a\":\n  -1e999}", "f: not valid JSON at line 3, column 8: number overflow"},
           {"[NaN]", "f: not valid JSON at column 2: "},
           {"{\n\n\"a\" 1}", "f: not valid JSON at line 3, column 5: "},
           {"\"\xff\"", "f: not valid JSON at column 2: "},
           {"[1] 2", "f: not valid JSON at column 5: "},
           {"{\"a\": 1, \"a\": 2}", "f: the key \"a\" occurs twice"},
           {"{\"a\": 1, \"a\": 2", "f: not valid JSON at column 16: "},
           {"[{\"a\": {}, \"b\": [], \"a\": 2}]", "f: the key \"a\" occurs twice"},
           {std::string(66, '['), "f: nested deeper than 64 levels"},
       }) {
    CAPTURE(c.text);
    CHECK_THAT(refusal(Fault::bad_file, [&] { parse_json(c.text, "f"); }),
               Catch::StartsWith(c.says) && !Catch::Contains("exception"));
  }
  CHECK_THAT(refusal(Fault::bad_input, [&] { parse_json("[", "", Fault::bad_input); }),
             Catch::StartsWith("not valid JSON at column "));
}

TEST_CASE("a text that is JSON becomes what it says") {
  for (const char* text :
       {"null", "true", "\"a\"", "-7", "18446744073709551615", "0.5", "[]", "{}", "[[],{},[1,[2]]]",
        R"({"a":{"b":[1,{"c":null}],"d":"x"},"e":[true,-1.5e300]})"})
    CHECK(parse_json(text, "f").dump() == Json::parse(text).dump());
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  CHECK(parse_json(deep, "f").dump() == deep);
}

TEST_CASE("numbers are shown as they were written") {
  const auto written = [](const std::string& text) {
    return parse_json(text, "f", Fault::bad_file, Numbers::as_written);
  };
  for (const char* text :
       {"1e3", "1E+03", "0.70", "99999999999999999999", "-1.50", "18446744073709551615", "7",
        "[1e3,{\"a\":[2.0]},\"1e3\"]", "-99999999999999999999999"})
    CHECK(shown(written(text)) == text);
  CHECK(number_of(written("0.70")) == 0.7);
  CHECK(number_of(written("7")) == 7);
  CHECK(number_of(Json(0.5)) == 0.5);
  CHECK(is_number(written("1e3")));
  CHECK_FALSE(is_number(written("\"1e3\"")));
  CHECK(shown(std::string(100, 'x')).size() == 60);
  CHECK(shown(written("[" + std::string(100, '1') + "]")).size() == 60);
}

TEST_CASE("text is checked for its syntax alone") {
  for (const char* text : {R"({"a": 1, "a": [2, true, null, -1.5]})", "7"})
    CHECK_NOTHROW(check_json(text, "f"));
  CHECK_THAT(refusal(Fault::bad_file, [] { check_json("{\"a\": 1, \"a\": 2", "f"); }),
             Catch::StartsWith("f: not valid JSON at column 16: "));
  CHECK_NOTHROW(check_json(std::string(100, '['), "f"));  // what is too deep is not judged
}
