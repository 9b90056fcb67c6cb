#include "test/apps/tiny_run.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace hydrant::test {

Outcome Tiny::generate(const std::string& lines, std::vector<std::string> more) const {
  std::vector<std::string> arguments{
      "generate",         "--model", model.path(),  "--prompts", work.write("in.jsonl", lines),
      "--max-new-tokens", "6",       "--ignore-eos"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return hydrant_run(arguments);
}

void check_refused(const Outcome& o, int code, const std::string& says) {
  CAPTURE(o.err);
  CHECK(o.signal == 0);
  CHECK(o.code == code);
  CHECK_THAT(o.err, Catch::Contains("hydrant: error: ") && Catch::Contains(says));
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') <= 8);
}

std::map<std::string, Json> by_id(const std::vector<Json>& rows) {
  std::map<std::string, Json> map;
  for (const Json& row : rows) map[row["id"].dump()] = row;
  REQUIRE(map.size() == rows.size());
  return map;
}

}  // namespace hydrant::test
