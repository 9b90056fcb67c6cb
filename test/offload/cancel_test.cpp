// A run that is cancelled between any two pieces of a layer, and what comes after it.
#include <catch2/catch.hpp>

#include "offload/weight_prefetcher.hpp"
#include "test/offload/cache_job.hpp"
#include "test/offload/file_model.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

struct Ended {
  std::vector<Completion> rows;
  RunFigures figures;
  int64_t asked = 0;
};

// Cancelled when it is asked for the last time that is allowed; 0: never.
Ended run(Generator& generator, const std::vector<Request>& rows, int64_t allowed = 0) {
  Ended end;
  end.rows.resize(rows.size());
  Listener listener;
  listener.cancelled = [&] { return ++end.asked == allowed; };
  listener.on_done = [&](size_t row, Completion&& c) { end.rows[row] = std::move(c); };
  end.figures = generator.run(rows, listener);
  return end;
}

bool begins_with(const std::vector<TokenChoice>& whole, const std::vector<TokenChoice>& part) {
  for (size_t i = 0; i < part.size(); i++)
    if (i >= whole.size() || part[i].id != whole[i].id) return false;
  return true;
}

}  // namespace

TEST_CASE("cancelled anywhere, a run keeps its rows and leaves all fit for the next", "[devices]") {
  const FileModel model({"llama"});
  const auto device = open_device(engine_device(), {1, ""});
  const int64_t cuts = test_backend().empty() ? 40 : 4;  // emulated devices are slow
  const WeightPlan plan = model.plan(device->ops());
  const std::vector<Request> rows = cache_job(model.spec, 7, 3);
  const auto expected = run_resident(*device, model, true, rows);
  for (const bool overlap : {true, false}) {
    WeightPrefetcher feed(model.checkpoint, model.spec, plan, *device,
                          {.shares = {30, 30, 40}, .slots = 3, .overlap = overlap});
    OffloadedCaches homes(*device, {.shares = {30, 30, 40},
                                    .slots = 2,
                                    .overlap = overlap,
                                    .compute = CacheCompute::device,
                                    .folder = "/var/tmp"});
    Generator generator(*device, model.spec, feed, {2, 2, 16, 64}, DType::f32, &homes);
    const int64_t asked = run(generator, rows).asked;
    REQUIRE(asked > 100);
    for (int64_t allowed = 1; allowed < asked; allowed += 1 + asked / cuts) {
      CAPTURE(overlap, allowed, asked);
      const Ended cut = run(generator, rows, allowed);
      CHECK(cut.asked == allowed);  // a yes is enough
      int64_t tokens = 0;
      for (size_t row = 0; row < rows.size(); row++) {
        const Completion& c = cut.rows[row];
        tokens += int64_t(c.tokens.size());
        if (c.finish == Finish::cancelled)
          CHECK(begins_with(expected[row].tokens, c.tokens));
        else
          REQUIRE(same_result(c, expected[row]));
      }
      CHECK(cut.figures.generated_tokens == tokens);
      const Ended next = run(generator, rows);
      for (size_t row = 0; row < rows.size(); row++)
        REQUIRE(same_result(next.rows[row], expected[row]));
    }
  }
}
