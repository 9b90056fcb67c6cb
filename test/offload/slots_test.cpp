// Which stages pass through the device in whose slot.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "offload/weight_layout.hpp"
#include "test/offload/file_model.hpp"
#include "test/offload/random_shares.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("stages lie in slots without touching, and only small ones in another's", "[devices]") {
  Random random(3);
  const auto device = open_device(engine_device(), {1, ""});
  bool shared = false, alone = false;
  for (const int32_t vocab : {16, 32, 48, 61, 400})
    for (const char* kind : {"opt", "opt-post", "llama", "neox"}) {
      const FileModel model({kind, DType::f32, FileKind::hugging_face, false, vocab});
      const WeightPlan plan = model.plan(device->ops());
      for (int trial = 0; trial < 20; trial++) {
        const WeightLayout layout(plan, model.spec, random_shares(random));
        std::map<int, size_t> taken;  // of each slot, by the stage that it is of
        size_t largest = 0;
        for (size_t i = 0; i < layout.stages.size(); i++) {
          const StageLayout& stage = layout.stages[i];
          if (stage.slot_bytes == 0) continue;
          CAPTURE(kind, vocab, trial, i);
          const bool own = stage.slot_of == int(i);
          (own ? alone : shared) = true;
          REQUIRE(stage.slot_of <= int(i));
          REQUIRE(stage.slot_at == (own ? 0 : taken.at(stage.slot_of)));
          size_t& end = taken[stage.slot_of] = stage.slot_at + stage.slot_bytes;
          const size_t first = layout.stages[size_t(stage.slot_of)].slot_bytes;
          REQUIRE(end <= first + first / 8);
          largest = std::max(largest, end);
        }
        REQUIRE(layout.slot_bytes == largest);
      }
    }
  CHECK(shared);
  CHECK(alone);
}
