#include "runtime/engine/feed_forward.hpp"

#include "runtime/engine/views.hpp"

namespace hydrant {

void feed_forward(const LayerContext& context, const LayerWeights& weights, ConstTensor normed,
                  ConstTensor residual, Tensor out) {
  const BlockSpec& block = context.spec.block;
  const int64_t t = normed.shape[0];
  Tensor inner = first_rows(context.memory.up, t);
  LinearArgs up{.in = normed, .parts = {}, .bias = weights[Vector::up_bias], .out = inner};
  if (block.gated) {
    up.parts = weights.parts({Matrix::gate, Matrix::up});
    context.ops.linear(context.stream, up);
    inner = first_rows(context.memory.gated, t);
    context.ops.gate(context.stream, {block.activation, up.out, inner});
  } else {
    up.parts = weights.parts({Matrix::up});
    up.after = block.activation;
    context.ops.linear(context.stream, up);
  }
  context.ops.linear(context.stream, {.in = inner,
                                      .parts = weights.parts({Matrix::down}),
                                      .bias = weights[Vector::down_bias],
                                      .residual = residual,
                                      .out = out});
}

}  // namespace hydrant
