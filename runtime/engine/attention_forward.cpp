#include "runtime/engine/attention_forward.hpp"

#include <algorithm>
#include <cmath>
#include <span>

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
  return {context.spec.block.rotary.dims, table};
}

Rotary rotary_of(const LayerContext& context, const Piece& piece) {
  if (context.spec.block.rotary.dims == 0) return {};
  return rotary_of(context, rows_of(context.memory.rotary, piece.token, piece.tokens));
}

// The segments of the view's places: side by side, for they come in order of places.
std::span<const Segment> segments_in(const CacheView& view, std::span<const Segment> segments) {
  const auto in = [&](const Segment& s) { return view.has(s.place); };
  const auto begin = std::find_if(segments.begin(), segments.end(), in);
  return {begin, std::find_if_not(begin, segments.end(), in)};
}

void attend_decoding(const LayerContext& context, const LayerPiece& at, const CacheView& cache,
                     ConstTensor qkv, Tensor q, Tensor out) {
  const BlockSpec& block = context.spec.block;
  const StepMemory& memory = context.memory;
  const std::span<const Segment> decode = segments_in(cache, at.group.decode);
  if (decode.empty()) return;
  const HeadShape shape = head_shape(block);
  context.ops.split_decode(context.stream, {.qkv = qkv,
                                            .rotary = rotary_of(context, at.piece),
                                            .shape = shape,
                                            .segments = decode,
                                            .cache = cache,
                                            .q = q});

  bool scored = false, evicts = false;
  for (const Segment& s : decode) {
    const policy::RowPlan& plan = cache.plans[s.place];
    scored |= plan.scored;
    evicts |= plan.slots.evicts_at(s.first);
  }
  AttendDecodeArgs attend{.q = q,
                          .shape = shape,
                          .segments = decode,
                          .cache = cache,
                          .ranks = {},
                          .scale = attention_scale(block),
                          .out = out,
                          .logits = {},
                          .lse = {}};
  if (memory.ranks.data) attend.ranks = rotary_of(context, memory.ranks);
  if (scored) {
    attend.logits = {
        memory.attention_logits.data, DType::f32, {at.piece.tokens, block.heads, cache.slots}};
    attend.lse = first_rows(memory.attention_lse, at.piece.tokens);
  }
  context.ops.attend_decode(context.stream, attend);
  if (scored || evicts)
    context.ops.settle(context.stream, {.logits = attend.logits,
                                        .lse = attend.lse,
                                        .shape = shape,
                                        .segments = decode,
                                        .cache = cache});
  context.caches.commit({at.layer, at.group.group},
                        StoreDecodeArgs{.segments = decode, .from = cache, .to = {}},
                        context.stream);
}

// Where this layer's keys and values of a chunk's prompt are gathered: its home when they fit and
// are the ones to attend, else the step's room for prompts.
PromptSegment place_chunk(const LayerContext& context, const LayerPiece& at, const Chunk& chunk) {
  const StepPrompt& prompt = context.step.prompts[chunk.prompt];
  const CacheView& cache = at.caches.of(chunk.segment.place);
  const policy::RowPlan& plan = cache.plans[chunk.segment.place];
  const StepMemory& memory = context.memory;
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

void attend_prompts(const LayerContext& context, const LayerPiece& at, ConstTensor qkv, Tensor q,
                    Tensor out) {
  const BlockSpec& block = context.spec.block;
  const HeadShape shape = head_shape(block);
  const float scale = attention_scale(block);
  const DType dtype = at.caches.begin()->dtype;
  std::vector<PromptSegment>& list = context.prompts[size_t(at.layer)];
  const size_t begin = list.size();
  bool scored = false;
  for (size_t i = 0; i < at.piece.segments; i++) {
    list.push_back(place_chunk(context, at, context.step.chunks[at.piece.segment + i]));
    const PromptSegment& s = list.back();
    if (!s.sum) continue;
    scored = true;
    if (s.segment.first == 0)
      context.stream.copy(s.sum, context.memory.zeros.data,
                          size_t(s.stats_stride) * size_t(shape.kv_heads) * sizeof(float));
  }
  const std::span<const PromptSegment> segments = std::span(list).subspan(begin);

  context.ops.split_prompt(context.stream, {.qkv = qkv,
                                            .rotary = rotary_of(context, at.piece),
                                            .shape = shape,
                                            .segments = segments,
                                            .dtype = dtype,
                                            .q = q});
  const Tensor lse = first_rows(context.memory.attention_lse, at.piece.tokens);
  context.ops.attend_prompt(context.stream, {.q = q,
                                             .shape = shape,
                                             .segments = segments,
                                             .dtype = dtype,
                                             .scale = scale,
                                             .out = out,
                                             .lse = lse});
  if (scored)
    context.ops.summarize_prompt(
        context.stream,
        {.q = q, .lse = lse, .shape = shape, .segments = segments, .dtype = dtype, .scale = scale});
  for (const PromptSegment& s : segments)
    if (s.segment.first + s.segment.count == s.length)
      context.caches.commit({at.layer, at.group.group},
                            StorePromptArgs{.prompt = s, .shape = shape, .to = {}}, context.stream);
}

}  // namespace

void attention_forward(const LayerContext& context, const LayerPiece& at,
                       const LayerWeights& weights, ConstTensor normed, ConstTensor residual,
                       Tensor out) {
  const StepMemory& memory = context.memory;
  const int64_t t = at.piece.tokens;
  const Tensor qkv = first_rows(memory.qkv, t), q = first_rows(memory.q, t);
  const Tensor attended = first_rows(memory.attended, t);
  context.ops.linear(context.stream, {.in = normed,
                                      .parts = weights.parts({Matrix::q, Matrix::k, Matrix::v}),
                                      .bias = weights[Vector::qkv_bias],
                                      .out = qkv});
  if (at.piece.decode)
    for (const CacheView& cache : at.caches) attend_decoding(context, at, cache, qkv, q, attended);
  else
    attend_prompts(context, at, qkv, q, attended);
  const ConstTensor flat{attended.data, attended.dtype, {t, attended.shape[1] * attended.shape[2]}};
  context.ops.linear(context.stream, {.in = flat,
                                      .parts = weights.parts({Matrix::out}),
                                      .bias = weights[Vector::out_bias],
                                      .residual = residual,
                                      .out = out});
}

}  // namespace hydrant
