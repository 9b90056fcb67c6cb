// The events that order the lanes are enough, and each of them is needed.
#include <catch2/catch.hpp>

#include "offload/weight_prefetcher.hpp"
#include "test/end_to_end/check_edges.hpp"
#include "test/offload/file_model.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

// One step of long prompts and a few of decoding, on a device that computes nothing.
void run(RecordingDevice& device, const FileModel& model, const WeightOffload& options) {
  const WeightPlan plan = model.plan(device.ops());
  WeightPrefetcher feed(model.checkpoint, model.spec, plan, device, options);
  run_with(device, model, feed, mixed_job(model.spec, 6, 3), {2, 3, 6, 200});
}

}  // namespace

TEST_CASE("edges between the lanes of weights are enough, and each is needed") {
  const FileModel model({"opt"});
  const WeightOffload options{.shares = {15, 35, 50}, .slots = 2, .disk_lanes = 1};
  // Ready and free of two slots of the ring, of two buffers for panels, of two for rows.
  check_edges(12, [&](RecordingDevice& device) { run(device, model, options); });
}

TEST_CASE("deeper rings and more lanes are ordered as well, without overlap there is nothing to") {
  const ModelChoice small_head{"opt", DType::f32, FileKind::hugging_face, false, 16};
  for (const ModelChoice& choice :
       {ModelChoice{"opt-post"}, ModelChoice{"llama"}, ModelChoice{"neox"}, small_head}) {
    const FileModel model(choice);
    for (const int slots : {2, 3, 5})
      for (const int lanes : {1, 3}) {
        RecordingDevice device;
        run(device, model, {.shares = {10, 30, 60}, .slots = slots, .disk_lanes = lanes});
        CAPTURE(choice.kind, choice.vocab, slots, lanes);
        CHECK(device.races() == std::vector<std::string>{});
      }
    RecordingDevice alone;
    run(alone, model, {.shares = {10, 30, 60}, .overlap = false});
    CHECK(alone.races() == std::vector<std::string>{});
    for (const RecordingDevice::Edge& edge : alone.edges()) CHECK(edge.first == "compute");
  }
}
