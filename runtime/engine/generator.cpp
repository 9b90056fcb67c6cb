#include "runtime/engine/generator.hpp"

#include <algorithm>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/copied_memory.hpp"
#include "runtime/engine/check_request.hpp"
#include "runtime/engine/generation_loop.hpp"
#include "runtime/engine/resident_feed.hpp"

namespace hydrant {
namespace {

KvShape kv_shape(const ModelSpec& spec, const JobLimits& limits, DType dtype,
                 const CacheHomes* homes) {
  KvShape shape{limits.groups,       limits.rows_per_group, spec.block.kv_heads,
                spec.block.head_dim, limits.slots,          dtype};
  shape.heads = spec.block.heads;
  if (!homes) return shape;
  shape.resident = homes->resident(shape);
  shape.host_attends = homes->host() != nullptr;
  return shape;
}

WorkSize work_size(const ModelSpec& spec, const JobLimits& limits) {
  const BlockSpec& block = spec.block;
  WorkSize work{.shape = {block.heads, block.kv_heads, block.head_dim}};
  work.tokens = limits.piece_tokens;
  work.width = std::max({spec.hidden, spec.embedding, block.ffn, block.heads * block.head_dim});
  work.rows = limits.rows_per_group;
  work.slots = align_up(*std::max_element(limits.slots.begin(), limits.slots.end()) + 1, kRunSlots);
  work.last_position = limits.last_ranked;
  work.prompts = std::min(limits.prompts, limits.chunk_tokens);
  work.prompt_length = limits.longest_prompt;
  return work;
}

void check_shape(const BatchShape& shape) {
  const auto need = [](int32_t value, std::string_view key) {
    if (value < 1) fail(Fault::bad_config, "batch.{} is {}, must be at least 1", key, value);
  };
  need(shape.rows_per_group, "rows_per_group");
  need(shape.groups, "groups");
  need(shape.prefill_chunk, "prefill_chunk");
  need(shape.prefill_tokens, "prefill_tokens");
}

size_t host_side_bytes(const Ops& host, const ModelSpec& spec, const JobLimits& limits,
                       DType kv_dtype) {
  Arena size;
  AttentionMemory(size, host, spec, limits, kv_dtype);
  return size.used();
}

// The memory of one job. Kept for the next one if that has the same limits.
struct Workspace {
  Workspace(Device& device, const ModelSpec& spec, const JobLimits& job, DType kv_dtype,
            CacheHomes* homes, HiddenHomes* hidden_homes)
      : limits(job),
        shape(kv_shape(spec, limits, kv_dtype, homes)),
        cache(device, shape),
        memory(device, spec, limits, kv_dtype) {
    if (homes)
      caches = homes->open(device, shape, cache);
    else
      caches = std::make_unique<ResidentCaches>(device.ops(), cache);
    const HiddenShape most = hidden_shape(spec, limits);
    if (hidden_homes)
      hidden = hidden_homes->open(device, most);
    else
      hidden = std::make_unique<ResidentHidden>(device, most);
    if (HostLane* const lane = caches->host_lane()) {
      Ops& ops = homes->host()->ops();
      host_memory = allocate_for_copies(device, host_side_bytes(ops, spec, limits, kv_dtype),
                                        "attention on the host");
      Arena arena(host_memory);
      host_attention = {arena, ops, spec, limits, kv_dtype};
      host_side.emplace(AttentionSide{ops, lane->stream(), host_attention, lane});
    }
  }

  JobLimits limits;
  KvShape shape;
  KvCache cache;
  StepMemory memory;
  Buffer host_memory;
  AttentionMemory host_attention;
  std::optional<AttentionSide> host_side;
  // Last: their lanes end before what they use.
  std::unique_ptr<CacheFeed> caches;
  std::unique_ptr<HiddenFeed> hidden;
};

}  // namespace

struct Generator::State {
  Device& device;
  const ModelSpec& spec;
  WeightFeed& weights;
  BatchShape shape;
  DType kv_dtype;
  CacheHomes* homes;
  HiddenHomes* hidden_homes;
  std::unique_ptr<Workspace> workspace;

  JobLimits limits(std::span<const Request> rows) const {
    for (size_t i = 0; i < rows.size(); i++) try {
        check_request(spec, rows[i]);
      } catch (const Error& e) {
        throw Error(e.fault(), fmt::format("row {}: {}", i, e.what()));
      }
    return job_limits(spec, rows, shape);
  }
};

Generator::Generator(Device& device, const ModelSpec& spec, WeightFeed& weights, BatchShape shape,
                     DType kv_dtype, CacheHomes* homes, HiddenHomes* hidden_homes)
    : state_(new State{device, spec, weights, shape, kv_dtype, homes, hidden_homes, nullptr}) {
  check_shape(shape);
}

Generator::~Generator() = default;

MemoryNeed Generator::need(std::span<const Request> rows) const {
  const State& s = *state_;
  if (rows.empty()) return {};
  const JobLimits limits = s.limits(rows);
  const Ops& ops = s.device.ops();
  const KvShape shape = kv_shape(s.spec, limits, s.kv_dtype, s.homes);
  const HiddenShape most = hidden_shape(s.spec, limits);
  const HiddenNeed hidden =
      s.hidden_homes ? s.hidden_homes->need(most) : HiddenNeed{ResidentHidden::bytes(most), 0};
  const WorkSize work = work_size(s.spec, limits);
  MemoryNeed need;
  need.kv = kv_bytes(shape, ops);
  need.workspace = StepMemory::bytes(s.device, s.spec, limits, s.kv_dtype) +
                   ops.scratch_bytes(work) + hidden.device;
  need.hidden = hidden.host;
  if (!s.homes) return need;
  need.cache = s.homes->need(shape, ops);
  if (Device* const host = s.homes->host()) {
    need.cache.host += KvCache::host_bytes(shape);
    WorkSize attention = work;
    attention.width = 0;  // it multiplies by no weight
    need.host_workspace = host_side_bytes(host->ops(), s.spec, limits, s.kv_dtype) +
                          host->ops().scratch_bytes(attention);
  }
  return need;
}

RunFigures Generator::run(std::span<const Request> rows, const Listener& listener) {
  State& s = *state_;
  if (rows.empty()) return {};
  const JobLimits limits = s.limits(rows);
  if (!s.workspace || s.workspace->limits != limits) {
    s.workspace.reset();  // the old one's memory goes before the new one's comes
    s.workspace =
        std::make_unique<Workspace>(s.device, s.spec, limits, s.kv_dtype, s.homes, s.hidden_homes);
  }
  Workspace& work = *s.workspace;
  // A failure stays with the lane it happened on: each run has a lane of its own to compute, and
  // the lanes of the cache are not used again.
  const std::unique_ptr<Stream> compute = s.device.make_stream("compute", /*inline_work=*/true);
  std::optional<GenerationLoop> loop;  // outlives what lanes of the workspace still do
  try {
    loop.emplace(
        LoopParts{s.device.ops(), s.spec, s.weights, *work.caches, *work.hidden, work.cache,
                  work.memory, *compute, work.host_side ? &*work.host_side : nullptr},
        work.limits);
    RunFigures figures = loop->run(rows, s.shape, listener);
    if (s.homes) {
      const CacheNeed elsewhere = s.homes->need(work.shape, s.device.ops());
      figures.kv_bytes += elsewhere.host + elsewhere.disk;
    }
    if (loop->ended_within_step()) s.workspace.reset();
    return figures;
  } catch (...) {
    s.workspace.reset();
    throw;
  }
}

}  // namespace hydrant
