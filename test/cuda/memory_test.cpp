// What runs take of a card: the memory that was planned, and nothing more once they are under way.
#include <catch2/catch.hpp>
#include <memory>

#include "offload/hidden_offload.hpp"
#include "offload/offloaded_caches.hpp"
#include "offload/weight_prefetcher.hpp"
#include "test/cuda/emu/fake_runtime.hpp"
#include "test/end_to_end/run_job.hpp"
#include "test/offload/file_model.hpp"
#include "test/ops/upload.hpp"

using namespace hydrant;
using namespace hydrant::test;
using policy::Id;

namespace {

// Where weights, caches and hidden states are at home.
struct Places {
  Shares weights, caches, hidden;
};
constexpr Places kPlaces[] = {{{100, 0, 0}, {100, 0, 0}, {100, 0, 0}},
                              {{20, 50, 30}, {100, 0, 0}, {100, 0, 0}},
                              {{100, 0, 0}, {25, 50, 25}, {50, 50, 0}},
                              {{0, 50, 50}, {0, 50, 50}, {0, 100, 0}}};

// Beside what is planned: victims of the cache, and of each lane some words in which kernels say
// what went wrong.
constexpr size_t kWords = 1024;

// A card with a model on it, and a job's homes.
struct Card {
  Card(const std::string& kind, const Places& places)
      : before(emu::taken()),
        model({kind}),
        device(open_device("cuda", {1, ""})),
        plan(model.plan(device->ops())),
        feed(model.checkpoint, model.spec, plan, *device, {.shares = places.weights}),
        caches(*device, {.shares = places.caches}),
        hidden({.shares = places.hidden}) {}
  Generator generator(const BatchShape& shape) {
    return {*device, model.spec, feed, shape, DType::f32, &caches, &hidden};
  }

  emu::Taken before;
  FileModel model;
  std::unique_ptr<Device> device;
  WeightPlan plan;
  WeightPrefetcher feed;
  OffloadedCaches caches;
  OffloadedHidden hidden;
};

std::vector<Request> job(const ModelSpec& spec, int32_t max_new_tokens) {
  std::vector<Request> rows;
  for (const NaivePolicy& p : std::vector<NaivePolicy>{
           {Id::full, {}}, {Id::h2o, {0, 6, 6}}, {Id::sinks, {2, 0, 8}}, {Id::tova, {0, 10, 1}}})
    rows.push_back(request_of(spec, {5, 9, 2, 33, 17, 8, 21}, max_new_tokens, p));
  return rows;
}

}  // namespace

TEST_CASE("a run takes of card and host what was planned") {
  for (const char* kind : {"opt", "llama"})
    for (const Places& places : kPlaces) {
      Card card(kind, places);
      const OffloadMemory& weights = card.feed.memory();
      const emu::Taken loaded = emu::taken();
      const std::vector<Request> rows = job(card.model.spec, 6);
      // So few tokens at a time that products take no tiles, of which these would fill a part.
      Generator generator = card.generator({2, 2, 4, 64});
      const MemoryNeed need = generator.need(rows);
      emu::forget_most();
      generator.run(rows, {});
      const emu::Taken after = emu::taken();
      CAPTURE(kind, places.weights.device, places.caches.device);
      CHECK(loaded.device - card.before.device == weights.on_device());
      const size_t pinned = loaded.pinned - card.before.pinned;
      CHECK(pinned >=
            weights.host_homes);  // of the staging, threads that read have a part elsewhere
      CHECK(pinned <= weights.on_host() + kWords);
      const size_t taken = after.most_device - loaded.device + after.most_pinned - loaded.pinned;
      CHECK(taken >= need.memory());
      CHECK(taken <= need.memory() + kWords);
    }
}

TEST_CASE("a card is asked for nothing in the steady state") {
  for (const char* kind : {"opt", "opt-post", "llama", "neox"})
    for (const Places& places : kPlaces) {
      Card card(kind, places);
      std::vector<Request> rows = job(card.model.spec, 24);
      rows[1].sampling.temperature = 0.7f;
      rows[1].sampling.top_p = 0.9f;
      std::vector<int> tokens(rows.size());
      int64_t before = 0, after = 0;
      Listener listener;
      listener.on_token = [&](size_t row, const TokenChoice&) {
        if (++tokens[row] == 5 && row == 0) before = emu::taken().calls;
        if (tokens[row] == 23 && row == 0) after = emu::taken().calls;
        return true;
      };
      card.generator({2, 2, 64, 64}).run(rows, listener);
      CAPTURE(kind, places.weights.device, places.caches.device);
      CHECK(after - before == 0);
      CHECK(before > card.before.calls);
      CHECK(tokens == std::vector<int>(rows.size(), 24));
    }
}

TEST_CASE("a product takes no more scratch than was said for it or for more tokens") {
  for (const Product what : every_card_product())
    for (const int64_t k : {256, 1280}) {
      const int64_t n = 40;
      const FileWeights file = random_weights(what.format, n, k, 1);
      for (const int64_t t : {1, 3, 8, 9, 10, 16, 17, 41, 64, 65, 130}) {
        INFO(name(what.format) << " activations " << int(what.activations) << " k " << k << " t "
                               << t);
        Bench bench({"cuda", {}});
        LinearArgs args{};
        args.in = bench.put(random_floats(t * k, 2), {t, k});
        args.parts[0] = upload(bench, file, what.activations);
        args.out = bench.make(DType::f32, {t, n});
        const size_t before = emu::taken().device;
        bench.ops().linear(*bench.stream, args);
        bench.stream->synchronize();
        const size_t took = emu::taken().device - before;
        CHECK(took > 0);
        for (const int64_t most : {t, t + 1, 2 * t})
          CHECK(took <=
                bench.ops().scratch_bytes({.shape = {1, 1, 8}, .tokens = most, .width = k}));
      }
    }
}
