// The attention half of a block, for one piece of a step.
#pragma once
#include "runtime/engine/layer_context.hpp"

namespace hydrant {

// The piece's tokens in one layer, and the cache that they read and extend.
struct LayerPiece {
  const Piece& piece;
  const GroupStep& group;
  int32_t layer = 0;
  const CacheViews& caches;
};

// out [t, hidden] = attention(normed [t, hidden]) + residual (which may be missing, or be `out`);
// extends the layer's cache of the piece's rows, and evicts.
void attention_forward(const LayerContext& context, const LayerPiece& at,
                       const LayerWeights& weights, ConstTensor normed, ConstTensor residual,
                       Tensor out);

}  // namespace hydrant
