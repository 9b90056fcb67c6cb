// Weights that are made up and weights read back from the disk are the same, and nothing is left.
#include "offload/weights_file.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "offload/weight_prefetcher.hpp"
#include "runtime/base/json.hpp"
#include "runtime/model/shape.hpp"
#include "test/offload/file_model.hpp"
#include "test/support/refusal.hpp"

using namespace hydrant;
using namespace hydrant::test;
using Catch::Matchers::Contains;

namespace {

// Rows over made-up weights, wherever they are.
class Made {
 public:
  Made(const std::string& kind, DType format) : model_({kind, format}) {
    model_.checkpoint = synthetic_tensors("made", model_.sources, format, 3);
    rows_ = mixed_job(model_.spec, 5, 4);
  }
  const Checkpoint& checkpoint() const { return model_.checkpoint; }
  void write() { model_.checkpoint = write_weights(model_.checkpoint, folder.path()); }

  std::vector<Completion> resident() { return run_resident(*device_, model_, false, rows_); }
  std::vector<Completion> placed(const Shares& shares) {
    const WeightPlan plan = model_.plan(device_->ops(), false);
    const WeightOffload options{.shares = shares};
    const OffloadMemory said =
        WeightPrefetcher::memory(checkpoint(), model_.spec, plan, device_->ops(), options);
    WeightPrefetcher feed(checkpoint(), model_.spec, plan, *device_, options);
    CHECK(feed.memory().on_host() == said.on_host());
    CHECK(feed.memory().on_device() == said.on_device());
    auto done = run_with(*device_, model_, feed, rows_, {2, 2, 16, 64});
    feed.settle();
    CHECK((feed.traffic().file > 0) == (shares.disk > 0));
    return done;
  }
  OffloadMemory memory(const Shares& shares) {
    return WeightPrefetcher::memory(checkpoint(), model_.spec, model_.plan(device_->ops(), false),
                                    device_->ops(), {.shares = shares});
  }

  const TemporaryFolder folder;

 private:
  FileModel model_;
  std::vector<Request> rows_;
  std::unique_ptr<Device> device_ = open_device(engine_device(), {2, ""});
};

void check_same(const std::vector<Completion>& a, const std::vector<Completion>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t row = 0; row < a.size(); row++) {
    CAPTURE(row);
    REQUIRE(a[row].finish == Finish::length);
    REQUIRE(same_result(a[row], b[row], kFlippedCode));
  }
}

}  // namespace

TEST_CASE("made-up weights give the same bits resident, on the host and really on disk",
          "[devices]") {
  for (const auto& [kind, format] :
       {std::pair("opt", DType::f16), std::pair("llama", DType::bf16),
        std::pair("neox", DType::q8_0), std::pair("llama", DType::q4_0)}) {
    CAPTURE(kind, name(format));
    Made made(kind, format);
    const auto expected = made.resident();
    check_same(made.placed({30, 70, 0}), expected);
    const OffloadMemory before = made.memory({0, 50, 50});
    made.write();
    CHECK_FALSE(made.checkpoint().is_made());
    CHECK(std::filesystem::is_empty(made.folder.path()));  // it has no name
    const OffloadMemory after = made.memory({0, 50, 50});
    CHECK(after.on_device() == before.on_device());
    // A file system without direct reads needs less than was said.
    CHECK(after.on_host() <= before.on_host());
    check_same(made.placed({0, 50, 50}), expected);
    check_same(made.placed({0, 0, 100}), expected);
    check_same(made.resident(), expected);
  }
}

TEST_CASE("weights that are in no file are not read from disk") {
  Made made("opt", DType::f16);
  CHECK_THAT(refusal(Fault::internal, [&] { made.placed({0, 0, 100}); }), Contains("in no file"));
}

TEST_CASE("a file of weights that cannot be written is refused, and nothing is left") {
  Made made("opt", DType::f16);
  const std::string path = made.folder.path();
  CHECK(refusal(Fault::io, [&] { write_weights(made.checkpoint(), path + "/none"); }) ==
        "memory.folder: " + path + "/none: no file can be made there: No such file or directory");

  // As large as no disk: refused before a byte is written.
  WeightSources huge;
  MatrixSource& m = huge.matrices.emplace_back();
  m.names = {"huge"};
  m.n = m.tensor_rows = int64_t{1} << 40;
  m.k = 1 << 14;
  size_t begun = 0;
  CHECK_THAT(refusal(Fault::io,
                     [&] {
                       write_weights(synthetic_tensors("x", huge, DType::bf16, 0), path,
                                     [&](uint64_t, uint64_t) { begun++; });
                     }),
             Contains("bytes for synthetic weights cannot be reserved"));
  CHECK(begun == 0);

  // Whatever ends it half way.
  const auto stop = [](uint64_t, uint64_t) { fail(Fault::io, "stopped"); };
  CHECK(refusal(Fault::io, [&] { write_weights(made.checkpoint(), path, stop); }) == "stopped");
  CHECK(std::filesystem::is_empty(path));
}
