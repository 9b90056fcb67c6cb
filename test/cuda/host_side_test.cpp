// Rows that the processor attends beside the card: the two backends' streams wait for each other's
// events, and each row is written by one of them alone, in its own layout.
#include <catch2/catch.hpp>

#include <stdexcept>

#include "offload/offloaded_caches.hpp"
#include "test/offload/cache_job.hpp"
#include "test/offload/random_shares.hpp"
#include "test/offload/watchdog.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("streams of the card and of the host wait for each other's events", "[devices]") {
  const Watchdog watchdog(120);
  const auto card = open_device("cuda", {}), host = open_device("cpu", {1, ""});
  for (const bool inline_card : {false, true})
    for (const bool inline_host : {false, true}) {
      const auto on_card = card->make_stream("compute", inline_card),
                 on_host = host->make_stream("attend_cache", inline_host);
      const auto sent = card->make_event(), attended = host->make_event();
      Buffer device = card->allocate(Memory::device, 8, "a cell"),
             pinned = card->allocate(Memory::pinned, 8, "a token");
      auto* const token = static_cast<uint64_t*>(pinned.data());
      *token = 1;
      on_card->copy(device.data(), token, 8);
      // To the host, thrice as large there, and back, each side starting as soon as it may.
      for (int step = 0; step < 20; step++) {
        on_card->copy(token, device.data(), 8);
        on_card->record(*sent);
        on_host->wait(*sent);
        on_host->fill(token, 8, [token] { *token *= 3; });
        on_host->record(*attended);
        on_card->wait(*attended);
        on_card->copy(device.data(), token, 8);
      }
      uint64_t result = 0;
      on_card->copy(&result, device.data(), 8);
      on_card->synchronize();
      on_host->synchronize();
      CHECK(result == 3486784401);  // 3^20
    }
}

TEST_CASE("a failure on either side reaches the other, as itself", "[devices]") {
  const auto card = open_device("cuda", {}), host = open_device("cpu", {1, ""});
  for (const bool card_fails : {false, true}) {
    const auto on_card = card->make_stream("compute", false),
               on_host = host->make_stream("attend_cache", false);
    Stream &first = card_fails ? *on_card : *on_host, &second = card_fails ? *on_host : *on_card;
    const auto event = host->make_event();
    first.fill(nullptr, 0, [] { throw std::runtime_error("gone"); });
    first.record(*event);
    second.wait(*event);
    bool ran = false;
    second.fill(nullptr, 0, [&] { ran = true; });
    CHECK_THROWS_WITH(second.synchronize(), "gone");
    CHECK_THROWS_WITH(first.synchronize(), "gone");
    CHECK_FALSE(ran);
  }
}

TEST_CASE("what the host attends for the card makes the choices of a run that is all the card's",
          "[devices]") {
  const Watchdog watchdog(300);
  Random random(41);
  uint64_t crossed = 0;
  for (const std::string& kind : tiny_kinds()) {
    Engine engine(tiny_model(kind, 5, random.below(2) == 0 ? 64 : 0));
    const std::vector<Request> rows = cache_job(engine.model.spec, 7, random.bits());
    const auto expected = run_all(engine.generator({int32_t(rows.size()), 1}), rows);
    const auto host = open_device("cpu", {1, ""});
    for (int trial = 0; trial < 2; trial++) {
      CacheOffload options{.shares = random_shares(random)};
      options.compute = CacheCompute::host;
      options.slots = int(2 + random.below(3));
      options.overlap = random.below(3) > 0;
      const BatchShape shape{int32_t(1 + random.below(6)), int32_t(1 + random.below(3)),
                             int32_t(4 + random.below(60)), int32_t(30 + random.below(200))};
      CAPTURE(kind, trial, options.shares.device, options.shares.host, options.shares.disk,
              options.overlap, shape.rows_per_group, shape.groups, shape.prefill_chunk);
      OffloadedCaches homes(*engine.device, options, nullptr, host.get());
      const auto done = run_with_caches(engine, rows, shape, DType::f32, homes);
      crossed += homes.traffic().to_host;
      for (size_t row = 0; row < rows.size(); row++) {
        CAPTURE(row, done[row].error);
        REQUIRE(same_result(done[row], expected[row]));
      }
    }
  }
  CHECK(crossed > 0);
}

TEST_CASE("bytes that go from the card to the host and back are the bytes predicted", "[devices]") {
  constexpr int32_t kTokens = 6;
  for (const int32_t groups : {1, 3}) {
    Engine engine(tiny_model("llama", 5));
    const ModelSpec& spec = engine.model.spec;
    const auto host = open_device("cpu", {1, ""});
    CacheOffload options{.shares = {20, 45, 35}};
    options.compute = CacheCompute::host;
    OffloadedCaches homes(*engine.device, options, nullptr, host.get());
    std::vector<Request> rows;
    for (int32_t i = 0; i < 6; i++)
      rows.push_back(request_of(spec, std::vector<int32_t>(size_t(3 + 7 * i), 7 + i), kTokens,
                                {policy::Id::h2o, {0, 5, 4}}));
    const BatchShape batch{6 / groups, groups, 16, 1000};
    run_with_caches(engine, rows, batch, DType::f32, homes);

    KvShape shape{groups, batch.rows_per_group, spec.block.kv_heads, spec.block.head_dim, {9, 9}};
    shape.heads = spec.block.heads;
    const CacheLayout layout = homes.layout(shape, engine.device->ops());
    uint64_t tokens = 0;  // that are attended on the host
    CacheMoves said;
    for (int32_t i = 0; i < 6; i++) {
      const int32_t group = i / batch.rows_per_group, place = i % batch.rows_per_group;
      const auto length = int32_t(rows[size_t(i)].prompt.size());
      if (place >= layout.homes(group).device) tokens += uint64_t(length + kTokens - 1);
      for (int32_t layer = 0; layer < spec.layers; layer++) {
        const policy::SlotLayout& slots = rows[size_t(i)].plans[size_t(layer)].slots;
        said += layout.prompt_moves(layer, group, place, length, slots);
        for (int32_t p = length; p < length + kTokens - 1; p++)
          said += layout.decode_moves(layer, group, place, p, slots);
      }
    }
    CAPTURE(groups);
    const CacheTraffic& moved = homes.traffic();
    const uint64_t passes = tokens * uint64_t(spec.layers) * sizeof(float);
    CHECK(tokens > 0);
    CHECK(moved.to_host == passes * uint64_t(spec.qkv_width()));
    CHECK(moved.to_device == passes * uint64_t(spec.block.heads) * uint64_t(spec.block.head_dim));
    CHECK(said.to_host == moved.to_host);
    CHECK(said.to_device == moved.to_device);
    CHECK(said.read == moved.read);
  }
}
