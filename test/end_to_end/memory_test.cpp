// What a run says it needs is what it takes, and a long prompt takes memory in proportion to its
// length, not to its square.
#include <catch2/catch.hpp>

#include "test/end_to_end/recording_device.hpp"
#include "test/end_to_end/run_job.hpp"

using namespace hydrant;
using namespace hydrant::test;
using policy::Id;

namespace {

TinyModel long_model(const std::string& kind) {
  TinyModel model = tiny_model(kind, 1);
  model.spec.max_positions = 20000;
  return model;
}

Request long_request(const ModelSpec& spec, int32_t length, const NaivePolicy& policy) {
  return request_of(spec, std::vector<int32_t>(size_t(length), 7), 4, policy);
}

}  // namespace

TEST_CASE("a run allocates what it said it needs", "[memory]") {
  for (const char* kind : {"llama", "neox"}) {
    const TinyModel model = long_model(kind);
    for (const NaivePolicy& p :
         std::vector<NaivePolicy>{{Id::full, {}},
                                  {Id::h2o, {0, 100, 100}},
                                  {Id::h2o, {4, 60, 60}, policy::Positions::cache}}) {
      std::vector<Request> rows;
      for (const int32_t length : {300, 40, 8000, 900, 1})
        rows.push_back(long_request(model.spec, length, p));
      RecordingDevice device;
      const ModelWeights weights = on_device(model, device);
      ResidentWeights feed(device.ops(), weights);
      Generator generator(device, model.spec, feed, {2, 2, 64, 1000}, DType::bf16);
      const MemoryNeed need = generator.need(rows);
      const size_t before = device.allocated();
      generator.run(rows, {});
      const size_t taken = device.allocated() - before;
      CAPTURE(kind, need.kv, need.workspace, taken);
      // Beside the formula of the cache there are its victims and alignment.
      CHECK(taken >= need.kv + need.workspace);
      CHECK(taken <= need.kv + need.workspace + need.kv / 50 + 4096);
    }
  }
}

TEST_CASE("the workspace of a long prompt grows with its length", "[memory]") {
  Engine engine(long_model("llama"), 2);
  const ModelSpec& spec = engine.model.spec;
  const auto workspace = [&](int32_t length) {
    const NaivePolicy h2o{Id::h2o, {0, 100, 100}};
    return double(engine.generator().need({{long_request(spec, length, h2o)}}).workspace);
  };
  const double small = workspace(2048), large = workspace(8192);
  // By the token: hidden states, a rotation, id and position; keys and values of one layer in f32
  // and two column sums and a zero for each of its KV heads.
  const double token = 4.0 * spec.hidden + 4.0 * spec.block.rotary.dims + 8 +
                       spec.block.kv_heads * (8.0 * spec.block.head_dim + 12);
  CHECK(large - small <= 1.05 * token * (8192 - 2048));
}
