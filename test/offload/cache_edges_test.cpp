// The events that order the lanes of offloaded caches are enough, and each of them is needed.
#include <catch2/catch.hpp>

#include "test/end_to_end/check_edges.hpp"
#include "test/offload/cache_job.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

void run(RecordingDevice& device, const TinyModel& model, const CacheOffload& options) {
  const ModelWeights weights = on_device(model, device);
  ResidentWeights feed(device.ops(), weights);
  OffloadedCaches homes(device, options);
  run_all(Generator(device, model.spec, feed, {4, 2, 9, 100}, DType::f32, &homes),
          cache_job(model.spec, 12, 3));
}

std::vector<std::string> races_of(const TinyModel& model, const CacheOffload& options) {
  RecordingDevice device;
  run(device, model, options);
  return device.races();
}

}  // namespace

TEST_CASE("edges between the lanes of caches are enough, and each is needed") {
  const TinyModel model = tiny_model("llama", 1);
  CacheOffload options{.shares = {25, 50, 25}, .compute = CacheCompute::device};
  const auto job = [&](RecordingDevice& device) { run(device, model, options); };
  // load_cache waits for `free` of two slots and `ready` of two images, store_cache for `attended`,
  // compute for `ready` of two slots and `stored`, the disk's lane for what used two images.
  check_edges(10, job);
  options.shares = {50, 50, 0};
  check_edges(6, job);
  // In host memory there is nothing to wait for but the disk, and it for the images.
  options.shares = {25, 50, 25};
  options.compute = CacheCompute::automatic;
  check_edges(4, job);
}

TEST_CASE("deeper rings of caches are ordered as well, without overlap there is nothing to") {
  for (const char* kind : {"opt-post", "llama", "neox"}) {
    const TinyModel model = tiny_model(kind, 2);
    for (const CacheCompute compute : {CacheCompute::device, CacheCompute::automatic}) {
      CacheOffload options{.shares = {20, 30, 50}, .compute = compute};
      for (options.slots = 2; options.slots < 6; options.slots++) {
        CAPTURE(kind, options.slots, int(compute));
        CHECK(races_of(model, options) == std::vector<std::string>{});
      }
      options.overlap = false;
      RecordingDevice alone;
      run(alone, model, options);
      CHECK(alone.races() == std::vector<std::string>{});
      for (const RecordingDevice::Edge& edge : alone.edges()) CHECK(edge.first == "compute");
    }
  }
}
