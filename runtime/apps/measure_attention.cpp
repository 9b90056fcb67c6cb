#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>

#include "runtime/apps/measure.hpp"
#include "runtime/kv/kv_cache.hpp"

namespace hydrant {
namespace {

constexpr size_t kCacheBytes = size_t{96} << 20;  // passed through in turn: more than caches hold
constexpr int32_t kPlaces = 8, kKvHeads = 4, kHeadDim = 64, kSlots = 511;
constexpr std::array<int32_t, 5> kGroups{1, 2, 3, 4, 8};  // query heads for each KV head
constexpr std::array<int32_t, 2> kHeadDims{64, 128};
constexpr int32_t kPrompt = 512, kChunk = 128;

float scale_of(int32_t head_dim) { return float(1 / std::sqrt(double(head_dim))); }

void fill(Stream& stream, std::byte* to, size_t bytes) {
  const std::vector<std::byte> numbers(bytes, std::byte{0x2c});  // some number in every format
  stream.copy(to, numbers.data(), bytes);
  stream.synchronize();
}

// Decode steps of some rows over a cache of many layers.
class Decode {
 public:
  Decode(Device& device, DType dtype)
      : ops_(device.ops()), stream_(device.make_stream("compute", /*inline_work=*/true)) {
    KvShape shape{1, kPlaces, kKvHeads, kHeadDim, {kSlots}, dtype};
    const size_t layer = kv_bytes(shape, ops_);
    shape.capacity.resize(std::max<size_t>(2, kCacheBytes / layer), kSlots);
    cache_ = std::make_unique<KvCache>(device, shape);
    for (size_t l = 0; l < shape.capacity.size(); l++) {
      homes_.push_back(cache_->home(int32_t(l), 0));
      fill(*stream_, homes_[l].kv.data, homes_[l].place_bytes * size_t(kPlaces));
    }
    const int32_t heads = kKvHeads * kGroups.back();
    Arena size;
    lay_out(size, heads);
    memory_ = device.allocate(Memory::device, size.used(), "queries to measure attention with");
    Arena arena(memory_);
    lay_out(arena, heads);
    fill(*stream_, q_.as<std::byte>(), size_t(q_.shape.count()) * sizeof(float));
  }

  double seconds(int32_t group, bool scored) {
    policy::RowPlan plan;
    plan.slots = {0, kSlots / 2, kSlots - kSlots / 2};
    plan.policy = policy::Id::h2o;
    plan.scored = scored;
    const std::vector<policy::RowPlan> plans(homes_.size(), plan);
    for (int32_t place = 0; place < kPlaces; place++) cache_->admit(0, place, plans);
    std::vector<Segment> segments;
    const int32_t position = scored ? 2 * kSlots : kSlots - 1;  // a full cache evicts
    for (int32_t place = 0; place < kPlaces; place++)
      segments.push_back({place, position, 1, place});
    const HeadShape shape{kKvHeads * group, kKvHeads, kHeadDim};
    const Shape vectors{kPlaces, shape.heads, kHeadDim};
    return seconds_of_call([&](size_t call) {
      AttendDecodeArgs args;
      args.q = {q_.data, DType::f32, vectors};
      args.shape = shape;
      args.segments = segments;
      args.cache = homes_[call % homes_.size()];
      args.scale = scale_of(kHeadDim);
      args.out = {out_.data, DType::f32, vectors};
      if (scored) {
        args.logits = {logits_.data, DType::f32, {kPlaces, shape.heads, args.cache.slots}};
        args.lse = {lse_.data, DType::f32, {kPlaces, shape.heads}};
      }
      ops_.attend_decode(*stream_, args);
      if (scored) {
        ops_.settle(*stream_, {args.logits, args.lse, shape, segments, args.cache});
        ops_.store_decode(*stream_, {segments, args.cache, args.cache});
      }
      stream_->synchronize();
    });
  }

 private:
  void lay_out(Arena& arena, int32_t heads) {
    q_ = arena.take(DType::f32, {kPlaces, heads, kHeadDim});
    out_ = arena.take(DType::f32, {kPlaces, heads, kHeadDim});
    logits_ = arena.take(DType::f32, {kPlaces, heads, kSlots + 1});
    lse_ = arena.take(DType::f32, {kPlaces, heads});
  }

  Ops& ops_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<KvCache> cache_;
  std::vector<CacheView> homes_;
  Buffer memory_;
  Tensor q_, out_, logits_, lse_;
};

struct PromptSeconds {
  double attend, columns;
};

// The last chunk of a prompt.
PromptSeconds prompt_seconds(Device& device, DType dtype, int32_t head_dim) {
  constexpr int32_t kHeads = 8, kKeyHeads = 2;
  const size_t run_bytes = device.ops().kv_run_bytes(dtype, head_dim),
               head_bytes = run_bytes * size_t(kPrompt / kRunSlots);
  const auto stream = device.make_stream("compute", /*inline_work=*/true);
  const Shape vectors{kChunk, kHeads, head_dim}, numbers{kChunk, kHeads};
  Tensor q, out, lse, sum, last;
  std::byte* keys = nullptr;
  const auto lay_out = [&](Arena& arena) {
    keys = static_cast<std::byte*>(arena.take_bytes(head_bytes * size_t(kKeyHeads)));
    q = arena.take(DType::f32, vectors);
    out = arena.take(DType::f32, vectors);
    lse = arena.take(DType::f32, numbers);
    sum = arena.take(DType::f32, {kKeyHeads, kPrompt});
    last = arena.take(DType::f32, {kKeyHeads, kPrompt});
  };
  Arena size;
  lay_out(size);
  const Buffer memory = device.allocate(Memory::device, size.used(), "a prompt to measure with");
  Arena arena(memory);
  lay_out(arena);
  fill(*stream, static_cast<std::byte*>(memory.data()), memory.bytes());
  PromptSegment p{
      .segment = {0, kPrompt - kChunk, kChunk, 0}, .kv = {keys, head_bytes, run_bytes}, .raw = {}};
  p.sum = sum.as<float>();
  p.last = last.as<float>();
  p.length = p.stats_stride = kPrompt;
  const std::array<PromptSegment, 1> segments{p};
  const HeadShape shape{kHeads, kKeyHeads, head_dim};
  const float scale = scale_of(head_dim);
  const double attend = seconds_of_call([&](size_t) {
    device.ops().attend_prompt(*stream, {q, shape, segments, dtype, scale, out, lse});
    stream->synchronize();
  });
  const double columns = seconds_of_call([&](size_t) {
    device.ops().summarize_prompt(*stream, {q, lse, shape, segments, dtype, scale});
    stream->synchronize();
  });
  const double pairs =
      double(kHeads) * double(kChunk) * (double(kPrompt - kChunk) + double(kChunk + 1) / 2);
  return {attend / pairs, columns / pairs};
}

}  // namespace

void measure_attention(Device& device, MachineRates& rates, const Measuring& measuring) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    measuring(fmt::format("attention to {} keys and values", name(dtype)));
    AttentionRate& rate = rates.attention.emplace_back();
    rate.dtype = dtype;
    for (Curve* curve : {&rate.decode, &rate.scored, &rate.prompt, &rate.columns})
      curve->beyond = Curve::Beyond::straight;
    Decode decode(device, dtype);
    const double components = double(kPlaces) * kKvHeads * kSlots * kHeadDim;
    std::array<std::vector<double>, kGroups.size()> plain, more;
    std::array<std::vector<double>, kHeadDims.size()> attend, columns;
    for (int round = 0; round < kRounds; round++) {
      for (size_t i = 0; i < kGroups.size(); i++) {
        plain[i].push_back(decode.seconds(kGroups[i], false));
        more[i].push_back(decode.seconds(kGroups[i], true) - plain[i].back());
      }
      for (size_t i = 0; i < kHeadDims.size(); i++) {
        const PromptSeconds s = prompt_seconds(device, dtype, kHeadDims[i]);
        attend[i].push_back(s.attend);
        columns[i].push_back(s.columns);
      }
    }
    for (size_t i = 0; i < kGroups.size(); i++) {
      rate.decode.points.emplace_back(kGroups[i], median(plain[i]) / components);
      rate.scored.points.emplace_back(kGroups[i], std::max(median(more[i]), 0.0) / components);
    }
    for (size_t i = 0; i < kHeadDims.size(); i++) {
      rate.prompt.points.emplace_back(kHeadDims[i], median(attend[i]));
      rate.columns.points.emplace_back(kHeadDims[i], median(columns[i]));
    }
  }
}

}  // namespace hydrant
