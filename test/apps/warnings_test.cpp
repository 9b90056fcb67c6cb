// What is done otherwise than asked is said: once, in one line, with the numbers.
#include <catch2/catch.hpp>

#include "runtime/base/file.hpp"
#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

using Words = std::vector<std::string>;

// The lines that warn.
std::vector<std::string> warnings(const Outcome& o) {
  std::vector<std::string> found;
  const std::string mark = "hydrant: warning: ";
  for (size_t at = 0; (at = o.err.find(mark, at)) != std::string::npos; at += mark.size())
    found.push_back(o.err.substr(at + mark.size(), o.err.find('\n', at) - at - mark.size()));
  return found;
}

void check_warned(const Outcome& o, const std::string& line) {
  CAPTURE(o.err, line);
  CHECK(o.code == 0);
  const auto found = warnings(o);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0], Catch::Contains(line));
}

}  // namespace

TEST_CASE("sizes that a flag's policy sets aside are warned of once, whatever the command") {
  const Tiny t;
  const std::string config =
      t.work.write("h2o.json", R"({"cache": {"policy": "h2o", "heavy": 4, "recent": 4}})");
  const std::string pairs = t.work.write("pairs", R"({"context": "a", "continuation": "b"})");
  for (const Words& command : {Words{"generate", "--prompt", "a", "--max-new-tokens", "2"},
                               Words{"score", "--input", pairs}, Words{"inspect"}}) {
    Words words = command;
    words.insert(words.end(), {"--model", t.model.path(), "--config", config, "--policy", "full"});
    check_warned(hydrant_run(words),
                 config + ": cache.heavy, cache.recent: no effect on the policy 'full'");
  }
}
