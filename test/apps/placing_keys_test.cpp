// What is said of a placement names the keys that say it.
#include <catch2/catch.hpp>

#include "test/apps/tiny_run.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("a message about a placement names the keys that it is about") {
  const Tiny t;
  const std::string lines =
      "{\"prompt\": \"one\"}\n{\"prompt\": \"another prompt\"}\n{\"prompt\": \"x\"}\n"
      "{\"prompt\": \"the fourth is the longest of all\"}\n{\"prompt\": \"5\"}\n";
  const auto says = [](const Outcome& o, const std::string& line) {
    CAPTURE(o.err, line);
    CHECK(o.code == 0);
    CHECK_THAT(o.err, Catch::Contains("hydrant: " + line));
  };
  const std::string fit = ": all would fit on the device (", copied = ": host memory is the cpu ",
                    home = "100,0,0";
  const Words weights{"--placement-weights", "10,90"}, cache{"--placement-cache", "50,50"},
      hidden{"--placement-activations", "0,100"}, no_cache{"--placement-cache", home},
      no_hidden{"--placement-activations", home}, no_weights{"--placement-weights", home};
  const auto warns = [&](const Words& words, const std::string& keys) {
    says(t.generate(lines, words), "warning: " + keys + fit);
  };
  warns(weights + no_cache + no_hidden, "--placement-weights");
  warns(no_weights + cache + no_hidden, "--placement-cache");
  warns(no_weights + no_cache + hidden, "--placement-activations");
  warns(weights + hidden, "--placement-weights, --placement-activations");
  warns(weights + cache + hidden,
        "--placement-weights, --placement-cache, --placement-activations");
  warns({"--placement", "40,60,100,0,0,100"}, "--placement");
  const auto file = [&](const std::string& text) {
    return Words{"--config", t.work.write("run.json", text)};
  };
  const std::string run = t.work.file("run.json");
  warns(file(R"({"placement": {"weights": {"device": 40, "host": 60}, "cache": {"device": 100},
                               "activations": {"device": 0, "host": 100}}})"),
        run + ": placement.weights, placement.activations");
  warns(file(R"({"placement": [40, 60, 50, 50, 100, 0]})"), run + ": placement");

  const Words tight{"--memory-device", "310KiB"};
  says(t.generate(lines, weights + no_cache + hidden + tight), "--placement-weights" + copied);
  says(t.generate(lines, Words{"--placement", "10,90,100,0,100,0"} + tight),
       "--placement" + copied);

  // A list of placements is instead of the others, wherever it is written.
  const Words bench{"bench",
                    "--model",
                    t.model.path(),
                    "--prompt-len",
                    "4",
                    "--batch",
                    "1",
                    "--repeats",
                    "1",
                    "--policy",
                    "full",
                    "--no-agreement",
                    "--output-len",
                    "3"};
  const std::string placed = R"("placement": {"cache": {"device": 0, "host": 100}})";
  says(hydrant_run(bench + Words{"--placement", "40,60,100,0,100,0"} + file("{" + placed + "}")),
       "warning: --placement" + fit);
  says(hydrant_run(bench +
                   file("{" + placed + R"(, "bench": {"placement": [[40, 60, 100, 0, 100, 0]]}})")),
       "warning: " + run + ": bench.placement" + fit);
  says(hydrant_run(bench + file("{" + placed + "}")),
       "warning: " + run + ": placement.cache" + fit);
}
