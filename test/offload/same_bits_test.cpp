// Where weights are at home changes no bit of any row.
#include <catch2/catch.hpp>

#include "offload/weight_prefetcher.hpp"
#include "test/offload/file_model.hpp"
#include "test/offload/random_shares.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

const std::vector<ModelChoice> kModels{{"opt"},
                                       {"opt", DType::f16},
                                       {"opt-post"},
                                       {"opt-post", DType::q8_0},
                                       {"llama", DType::bf16},
                                       {"llama", DType::f32, FileKind::gguf},
                                       {"llama", DType::q4_0, FileKind::gguf, true},
                                       {"llama", DType::q4_1, FileKind::gguf},
                                       {"llama", DType::q4_k, FileKind::gguf},
                                       {"llama", DType::q6_k, FileKind::gguf, true},
                                       {"neox"},
                                       {"neox", DType::q8_0, FileKind::gguf},
                                       {"neox-serial", DType::bf16},
                                       // heads small beside a layer
                                       {"llama", DType::bf16, FileKind::hugging_face, false, 16},
                                       {"opt", DType::f32, FileKind::hugging_face, true, 16}};

}  // namespace

TEST_CASE("any placement, depth, overlap and group split gives the resident run's bits",
          "[devices]") {
  Random random(99);
  // An emulated device is slow: two cells for each model there. Each job has rows of every policy,
  // and over the models every value of the other axes comes up, so each of them meets each policy.
  const bool emulated = !test_backend().empty();
  for (size_t m = 0; m < kModels.size(); m++) {
    const ModelChoice& choice = kModels[m];
    const FileModel model(choice);
    const std::vector<Request> rows = mixed_job(model.spec, 6, 4);
    const bool exact = random.below(2) == 0;
    const double more = exact ? 0 : is_quantised(choice.format) ? kFlippedCode : kFlippedRounding;
    const auto device = open_device(engine_device(), {2, ""});
    const WeightPlan plan = model.plan(device->ops(), exact);
    const auto expected = run_resident(*device, model, exact, rows);
    for (const Completion& c : expected) REQUIRE(c.finish == Finish::length);
    for (int trial = 0; trial < (emulated ? 2 : 8); trial++) {
      const size_t cell = emulated ? 2 * m + size_t(trial) : size_t(trial);
      WeightOffload options{.shares = random_shares(random)};
      if (emulated) options.shares = shares_in_turn(cell);
      options.slots = cell % 3 == 2 ? 5 : int(2 + cell % 3);
      options.overlap = cell % 5 != 3;
      options.disk_lanes = int(1 + random.below(12));
      options.arriving = size_t{1} << (12 + 4 * cell % 16);  // from one turn a lane to many
      options.caching = cell % 2 == 0 ? Caching::direct : Caching::cached;
      const auto groups = int32_t(1 + (emulated ? int64_t(cell / 2 % 3) : random.below(3)));
      CAPTURE(choice.kind, name(choice.format), exact, options.shares.device, options.shares.host,
              options.shares.disk, options.slots, options.overlap, options.disk_lanes, trial,
              groups);
      WeightPrefetcher feed(model.checkpoint, model.spec, plan, *device, options);
      const auto run = [&] {
        return run_with(*device, model, feed, rows, {2, groups, int32_t(5 + random.below(60)), 60});
      };
      for (int again = 0; again < 2; again++) {  // the second run goes on where the first ended
        const auto done = run();
        for (size_t row = 0; row < rows.size(); row++) {
          CAPTURE(row, again);
          REQUIRE(same_result(done[row], expected[row], more));
        }
      }
    }
  }
}

TEST_CASE("a run that ends within a step leaves the feed fit for the next", "[devices]") {
  const FileModel model({"llama"});
  const auto device = open_device(engine_device(), {1, ""});
  const WeightPlan plan = model.plan(device->ops());
  const std::vector<Request> rows = mixed_job(model.spec, 3, 4);
  const auto expected = run_resident(*device, model, true, rows);
  for (const bool overlap : {true, false}) {
    WeightPrefetcher feed(model.checkpoint, model.spec, plan, *device,
                          {.shares = {30, 30, 40}, .slots = 3, .overlap = overlap});
    const auto lane = device->make_stream("compute", true);
    feed.prefetch(1);
    feed.acquire(1, *lane);
    feed.prefetch(2);
    const auto done = run_with(*device, model, feed, rows, {3, 1, 64, 64});
    for (size_t row = 0; row < rows.size(); row++) REQUIRE(same_result(done[row], expected[row]));
  }
}
