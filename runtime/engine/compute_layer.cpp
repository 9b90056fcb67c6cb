#include "runtime/engine/compute_layer.hpp"

#include <chrono>

#include "runtime/engine/attention_forward.hpp"
#include "runtime/engine/feed_forward.hpp"
#include "runtime/engine/views.hpp"

namespace hydrant {
namespace {

using Clock = std::chrono::steady_clock;

void normalize(const LayerContext& context, ConstTensor in, ConstTensor gain, ConstTensor bias,
               Tensor out) {
  const BlockSpec& block = context.spec.block;
  context.ops.normalize(context.stream, {block.norm, in, gain, bias, block.norm_epsilon, out});
}

void embed(const LayerContext& context, const Piece& piece, const LayerWeights& weights,
           Tensor hidden) {
  const StepMemory& memory = context.memory;
  const bool projected = bool(weights[Matrix::project_in]);
  const Tensor tokens = projected ? first_rows(memory.embedded, piece.tokens) : hidden;
  EmbedArgs ids;
  ids.indices = rows_of(memory.ids, piece.token, piece.tokens);
  ids.out = tokens;
  context.weights.look_up(Matrix::tokens, ids, context.stream);
  if (projected)
    context.ops.linear(context.stream,
                       {.in = tokens, .parts = weights.parts({Matrix::project_in}), .out = hidden});
  if (!context.spec.learned_places) return;
  EmbedArgs places;
  places.indices = rows_of(memory.positions, piece.token, piece.tokens);
  places.offset = context.spec.place_offset;
  places.accumulate = true;
  places.out = hidden;
  context.weights.look_up(Matrix::places, places, context.stream);
}

void block(const LayerContext& context, const LayerPiece& at, const LayerWeights& weights,
           Tensor x) {
  const StepMemory& memory = context.memory;
  const int64_t t = at.piece.tokens;
  const Tensor normed = first_rows(memory.normed, t);
  const auto norm1 = [&](Tensor out) {
    normalize(context, x, weights[Vector::norm1_gain], weights[Vector::norm1_bias], out);
  };
  const auto norm2 = [&](Tensor out) {
    normalize(context, x, weights[Vector::norm2_gain], weights[Vector::norm2_bias], out);
  };
  switch (context.spec.block.order) {
    case BlockOrder::pre_norm:
      norm1(normed);
      attention_forward(context, at, weights, normed, x, x);
      norm2(normed);
      feed_forward(context, weights, normed, x, x);
      break;
    case BlockOrder::post_norm:
      attention_forward(context, at, weights, x, x, x);
      norm1(x);
      feed_forward(context, weights, x, x, x);
      norm2(x);
      break;
    case BlockOrder::parallel: {
      // Both halves read the block's input, so its second norm comes before the first sum.
      const Tensor normed_ffn = first_rows(memory.normed_ffn, t);
      norm1(normed);
      norm2(normed_ffn);
      attention_forward(context, at, weights, normed, x, x);
      feed_forward(context, weights, normed_ffn, x, x);
      break;
    }
  }
}

// Keeps what the head will need of the last block's work.
void keep_outputs(const LayerContext& context, const GroupStep& group, const Piece& piece,
                  Tensor x) {
  const std::span<const StepOutput> outputs = outputs_of(group, piece);
  if (outputs.empty()) return;
  const int64_t first = group.first_output + (outputs.data() - group.outputs.data());
  const auto rows = int64_t(outputs.size());
  context.ops.gather(context.stream, {rows_of(context.memory.outputs, first, rows), x,
                                      rows_of(context.memory.last, first, rows)});
}

void head(const LayerContext& context, const GroupStep& group, const LayerWeights& weights) {
  const StepMemory& memory = context.memory;
  const auto rows = int64_t(group.outputs.size());
  Tensor x = rows_of(memory.last, group.first_output, rows);
  if (context.spec.final_norm) {
    const Tensor normed = first_rows(memory.last_normed, rows);
    normalize(context, x, weights[Vector::final_gain], weights[Vector::final_bias], normed);
    x = normed;
  }
  if (weights[Matrix::project_out]) {
    const Tensor projected = first_rows(memory.last_projected, rows);
    context.ops.linear(context.stream,
                       {.in = x, .parts = weights.parts({Matrix::project_out}), .out = projected});
    x = projected;
  }
  const Tensor made = first_rows(memory.made_logits, rows);
  context.ops.linear(context.stream,
                     {.in = x, .parts = weights.parts({Matrix::head}), .out = made});
  context.ops.summarize_logits(context.stream,
                               {made, first_rows(memory.best, rows), first_rows(memory.lse, rows)});
  if (made.data != memory.logits.data)
    context.stream.copy(memory.logits.data, made.data,
                        size_t(row_bytes(made.dtype, made.shape.count())));
}

// Piece by piece, whose host time is added to its kind. A step may hold thousands of tokens, a
// piece does not: between two of them the run may end.
template <class Work>
void each_piece(const LayerContext& context, const GroupStep& group, const Work& work) {
  for (const Piece& piece : group.pieces) {
    if (context.cancellation.ask()) return;
    const auto begin = Clock::now();
    work(piece);
    (piece.decode ? context.seconds.decode : context.seconds.prefill) +=
        std::chrono::duration<double>(Clock::now() - begin).count();
  }
}

}  // namespace

void compute_layer(const LayerContext& context, int stage, const GroupStep& group,
                   const LayerWeights& weights) {
  const int last_block = context.spec.layers;
  if (stage > last_block) return head(context, group, weights);
  const int32_t layer = stage - 1;
  CacheViews caches;
  if (stage > 0) caches = context.caches.acquire({layer, group.group}, context.stream);
  each_piece(context, group, [&](const Piece& piece) {
    const Tensor x = context.hidden.acquire(stage, piece.number, context.stream);
    if (stage == 0)
      embed(context, piece, weights, x);
    else
      block(context, {piece, group, layer, caches}, weights, x);
    if (stage == last_block) keep_outputs(context, group, piece, x);
    context.hidden.release(stage, piece.number, context.stream);
  });
  if (stage > 0 && !context.cancellation.said())
    context.caches.release({layer, group.group}, context.stream);
}

}  // namespace hydrant
