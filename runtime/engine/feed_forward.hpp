// The MLP half of a block.
#pragma once
#include "runtime/engine/layer_context.hpp"

namespace hydrant {

// out [t, hidden] = mlp(normed [t, hidden]) + residual, which may be `out`.
void feed_forward(const LayerContext& context, const LayerWeights& weights, ConstTensor normed,
                  ConstTensor residual, Tensor out);

}  // namespace hydrant
