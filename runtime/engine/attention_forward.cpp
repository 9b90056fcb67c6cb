#include "runtime/engine/attention_forward.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "runtime/device/traced.hpp"
#include "runtime/engine/limits.hpp"
#include "runtime/engine/views.hpp"

namespace hydrant {
namespace {

HeadShape head_shape(const BlockSpec& block) {
  return {block.heads, block.kv_heads, block.head_dim};
}

float attention_scale(const BlockSpec& block) {
  return float(1 / std::sqrt(double(block.head_dim)));
}

Rotary rotary_of(const LayerContext& context, const Tensor& table) {
  if (!table.data) return {};
  return {context.spec.block.rotary.dims, table};
}

// The piece's tokens in one side's memory.
struct SideTokens {
  SideTokens(const LayerContext& context, const AttentionSide& side, const Piece& piece)
      : qkv(first_rows(side.memory.qkv, piece.tokens)),
        q(first_rows(side.memory.q, piece.tokens)),
        attended(first_rows(side.memory.attended, piece.tokens)),
        lse(first_rows(side.memory.lse, piece.tokens)) {
    if (context.spec.block.rotary.dims > 0)
      rotary = rotary_of(context, rows_of(side.memory.rotary, piece.token, piece.tokens));
  }
  Tensor qkv, q, attended, lse;
  Rotary rotary;
};

// The segments of the view's places: side by side, for they come in order of places.
std::span<const Segment> segments_in(const CacheView& view, std::span<const Segment> segments) {
  const auto in = [&](const Segment& s) { return view.has(s.place); };
  const auto begin = std::find_if(segments.begin(), segments.end(), in);
  return {begin, std::find_if_not(begin, segments.end(), in)};
}

void attend_decoding(const LayerContext& context, const AttentionSide& side, const LayerPiece& at,
                     const CacheView& cache) {
  const BlockSpec& block = context.spec.block;
  const std::span<const Segment> decode = segments_in(cache, at.group.decode);
  if (decode.empty()) return;
  const SideTokens tokens(context, side, at.piece);
  const HeadShape shape = head_shape(block);
  side.ops.split_decode(side.stream, {.qkv = tokens.qkv,
                                      .rotary = tokens.rotary,
                                      .shape = shape,
                                      .segments = decode,
                                      .cache = cache,
                                      .q = tokens.q});

  bool scored = false, evicts = false;
  for (const Segment& s : decode) {
    const policy::RowPlan& plan = cache.plans[s.place];
    scored |= plan.scored;
    evicts |= plan.slots.evicts_at(s.first);
  }
  AttendDecodeArgs attend{.q = tokens.q,
                          .shape = shape,
                          .segments = decode,
                          .cache = cache,
                          .ranks = rotary_of(context, side.memory.ranks),
                          .scale = attention_scale(block),
                          .out = tokens.attended,
                          .logits = {},
                          .lse = {}};
  if (scored) {
    attend.logits = {
        side.memory.logits.data, DType::f32, {at.piece.tokens, block.heads, cache.slots}};
    attend.lse = tokens.lse;
  }
  side.ops.attend_decode(side.stream, attend);
  if (side.lane) side.lane->attended();
  if (scored || evicts)
    side.ops.settle(side.stream, {.logits = attend.logits,
                                  .lse = attend.lse,
                                  .shape = shape,
                                  .segments = decode,
                                  .cache = cache});
  context.caches.commit({at.layer, at.group.group},
                        StoreDecodeArgs{.segments = decode, .from = cache, .to = {}}, side.stream);
}

// Where this layer's keys and values of a chunk's prompt are gathered: its home when they fit and
// are the ones to attend, else the step's room for prompts.
PromptSegment place_chunk(const LayerContext& context, const AttentionMemory& memory,
                          const LayerPiece& at, const Chunk& chunk) {
  const StepPrompt& prompt = context.step.prompts[chunk.prompt];
  const CacheView& cache = at.caches.of(chunk.segment.place);
  const policy::RowPlan& plan = cache.plans[chunk.segment.place];
  const auto kv_heads = size_t(context.spec.block.kv_heads);
  PromptSegment s{.segment = chunk.segment, .kv = cache.row(chunk.segment.place), .raw = {}};
  s.length = prompt.length;
  if (needs_prompt_room(plan, prompt.length)) {
    const size_t run_bytes = memory.prompt_kv.run_bytes,
                 head_bytes = size_t(prompt.runs) * run_bytes;
    s.kv = {memory.prompt_kv.data + size_t(prompt.run) * kv_heads * run_bytes, head_bytes,
            run_bytes};
    if (plan.positions == policy::Positions::cache)
      s.raw = {s.kv.data + kv_heads * head_bytes, head_bytes, run_bytes};
  }
  if (plan.scored) {
    s.stats_stride = int32_t(prompt_stats_of(prompt.length));
    s.sum = memory.prompt_sum.as<float>() + size_t(prompt.stat) * kv_heads;
    s.last = memory.prompt_last.as<float>() + size_t(prompt.stat) * kv_heads;
  }
  return s;
}

void attend_prompts(const LayerContext& context, const AttentionSide& side, const LayerPiece& at,
                    std::span<const Chunk> chunks) {
  const BlockSpec& block = context.spec.block;
  const SideTokens tokens(context, side, at.piece);
  const HeadShape shape = head_shape(block);
  const float scale = attention_scale(block);
  const DType dtype = at.caches.begin()->dtype;
  std::vector<PromptSegment>& list = context.prompts[size_t(at.layer)];
  const size_t begin = list.size();
  bool scored = false;
  for (const Chunk& chunk : chunks) {
    list.push_back(place_chunk(context, side.memory, at, chunk));
    const PromptSegment& s = list.back();
    if (!s.sum) continue;
    scored = true;
    if (s.segment.first == 0)
      side.stream.copy(s.sum, side.memory.zeros.data,
                       size_t(s.stats_stride) * size_t(shape.kv_heads) * sizeof(float));
  }
  const std::span<const PromptSegment> segments = std::span(list).subspan(begin);

  side.ops.split_prompt(side.stream, {.qkv = tokens.qkv,
                                      .rotary = tokens.rotary,
                                      .shape = shape,
                                      .segments = segments,
                                      .dtype = dtype,
                                      .q = tokens.q});
  side.ops.attend_prompt(side.stream, {.q = tokens.q,
                                       .shape = shape,
                                       .segments = segments,
                                       .dtype = dtype,
                                       .scale = scale,
                                       .out = tokens.attended,
                                       .lse = tokens.lse});
  if (side.lane) side.lane->attended();
  if (scored)
    side.ops.summarize_prompt(side.stream, {.q = tokens.q,
                                            .lse = tokens.lse,
                                            .shape = shape,
                                            .segments = segments,
                                            .dtype = dtype,
                                            .scale = scale});
  for (const PromptSegment& s : segments)
    if (s.segment.first + s.segment.count == s.length)
      context.caches.commit({at.layer, at.group.group},
                            StorePromptArgs{.prompt = s, .shape = shape, .to = {}}, side.stream);
}

std::span<const Chunk> chunks_of(const LayerContext& context, const Piece& piece) {
  return std::span(context.step.chunks).subspan(piece.segment, piece.segments);
}

// The first of the piece's tokens that is attended on the host: none but those behind it are, for
// places come in order.
int64_t first_on_host(const LayerContext& context, const LayerPiece& at) {
  if (!context.host_side) return at.piece.tokens;
  const auto on_host = [&](const Segment& s) { return at.caches.of(s.place).side == Side::host; };
  if (at.piece.decode) {
    for (const Segment& s : at.group.decode)
      if (on_host(s)) return s.token;
  } else {
    for (const Chunk& c : chunks_of(context, at.piece))
      if (on_host(c.segment)) return c.segment.token;
  }
  return at.piece.tokens;
}

// Tokens [first, end) of the piece, which are all of one side's.
void attend(const LayerContext& context, const AttentionSide& side, const LayerPiece& at,
            int64_t first, int64_t end) {
  if (first == end) return;
  if (at.piece.decode) {
    for (const AttendedView& cache : at.caches)
      if ((cache.side == Side::host) == (side.lane != nullptr))
        attend_decoding(context, side, at, cache);
    return;
  }
  const std::span<const Chunk> all = chunks_of(context, at.piece);
  const auto before = [&](int64_t token) {
    return std::find_if(all.begin(), all.end(),
                        [&](const Chunk& c) { return c.segment.token >= token; });
  };
  attend_prompts(context, side, at, {before(first), before(end)});
}

// The host begins before the device does its own part, and ends behind it.
void attend_on_both(const LayerContext& context, const LayerPiece& at) {
  const int64_t tokens = at.piece.tokens, border = first_on_host(context, at);
  const AttentionSide& device = context.device_side;
  if (border == tokens) return attend(context, device, at, 0, tokens);
  const AttentionSide& host = *context.host_side;
  const auto part = [&](const Tensor& t) { return rows_of(t, border, tokens - border); };
  host.lane->to_host(part(host.memory.qkv), part(device.memory.qkv), device.stream);
  {
    const Traced traced(host.stream, 0, "layer {} group {}", at.layer, at.group.group);
    attend(context, host, at, border, tokens);
  }
  attend(context, device, at, 0, border);
  host.lane->to_device(part(device.memory.attended), part(host.memory.attended), device.stream);
}

}  // namespace

void attention_forward(const LayerContext& context, const LayerPiece& at,
                       const LayerWeights& weights, ConstTensor normed, ConstTensor residual,
                       Tensor out) {
  const AttentionMemory& memory = context.memory.attention;
  const int64_t t = at.piece.tokens;
  context.ops.linear(context.stream, {.in = normed,
                                      .parts = weights.parts({Matrix::q, Matrix::k, Matrix::v}),
                                      .bias = weights[Vector::qkv_bias],
                                      .out = first_rows(memory.qkv, t)});
  attend_on_both(context, at);
  const Tensor attended = first_rows(memory.attended, t);
  const ConstTensor flat{attended.data, attended.dtype, {t, attended.shape[1] * attended.shape[2]}};
  context.ops.linear(context.stream, {.in = flat,
                                      .parts = weights.parts({Matrix::out}),
                                      .bias = weights[Vector::out_bias],
                                      .residual = residual,
                                      .out = out});
}

}  // namespace hydrant
