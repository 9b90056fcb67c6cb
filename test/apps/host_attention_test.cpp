// A device whose memory is not the host's, and caches that the processor attends beside it.
#include <catch2/catch.hpp>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/loaded_model.hpp"
#include "runtime/apps/memory_plan.hpp"
#include "runtime/apps/traffic_meter.hpp"
#include "test/apps/tiny_run.hpp"
#include "test/offload/lane_device.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

std::vector<std::vector<int32_t>> tokens_of(LoadedModel& loaded, const BatchShape& shape,
                                            DType kv_dtype, const std::vector<Request>& rows) {
  std::vector<std::vector<int32_t>> tokens(rows.size());
  Listener listener;
  listener.on_token = [&](size_t row, const TokenChoice& t) {
    tokens[row].push_back(t.id);
    return true;
  };
  loaded.generator(shape, kv_dtype).run(rows, listener);
  return tokens;
}

}  // namespace

TEST_CASE("a device beside the host leaves to it what it is told to, as planned") {
  const Tiny tiny;
  const Model model = open_described_model(tiny.model.path());
  RunConfig config;
  config.placement.weights = {};
  config.placement.cache = {25, 40, 35};
  config.placement.automatic = false;
  config.cache_compute = "host";
  config.threads = 1;
  config.compute_dtype = "f32";
  const policy::Choice h2o{policy::Id::h2o, {}, {{.sinks = 1, .heavy = 3, .recent = 4}}};
  std::vector<Request> rows(8, sized_request(model.spec, h2o, 20, 10));
  for (size_t i = 0; i < rows.size(); i++)
    for (int32_t& id : rows[i].prompt)
      id = int32_t(40 + 7 * i + size_t(&id - rows[i].prompt.data()));
  const BatchShape shape{4, 2, 16, 100};

  LaneDevice near;
  const DType kv_dtype = cache_dtype(config, near);
  const auto plan_on = [&](Device& device) {
    return plan_run(config, model, device, run_need(config, model, device, shape, rows));
  };
  LoadedModel in_place(model, near, plan_on(near), /*quiet=*/true);
  const auto expected = tokens_of(in_place, shape, kv_dtype, rows);

  LaneDevice apart;
  apart.computes_in_host_memory = false;
  const RunPlan plan = plan_on(apart);
  const auto item = [](const Tier& tier, std::string_view what) {
    for (const MemoryItem& i : tier.items)
      if (i.what == what) return i.bytes;
    return size_t{0};
  };
  CHECK(item(plan.host, "working memory of attention") > 0);
  CHECK(item(plan_on(near).host, "working memory of attention") == 0);
  CHECK(item(plan.device, "room for caches that pass through") == 0);
  CHECK(item(plan.device, "KV cache") < item(plan_on(near).device, "KV cache"));
  LoadedModel loaded(model, apart, plan, /*quiet=*/true);
  CHECK(tokens_of(loaded, shape, kv_dtype, rows) == expected);

  const CacheMoves said =
      predicted_cache_moves(loaded, model.spec, apart.ops(), shape, kv_dtype, rows).moves;
  CHECK(loaded.caches()->traffic().to_host == said.to_host);
  CHECK(loaded.caches()->traffic().to_device == said.to_device);
  // Six rows of 20 + 9 tokens.
  const BlockSpec& block = model.spec.block;
  CHECK(said.to_device == uint64_t(6 * 29 * model.spec.layers * block.heads * block.head_dim * 4));
}
