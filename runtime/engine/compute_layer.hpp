// One stage of the model for one group's part of a step: embedding, a block, or the head.
#pragma once
#include "runtime/engine/feed.hpp"
#include "runtime/engine/layer_context.hpp"
#include "runtime/engine/step.hpp"
#include "runtime/engine/step_memory.hpp"

namespace hydrant {

// Stage 0: hidden states of the group's tokens. Stages 1..L: a block's work on them, and on the
// layer's cache. Stage L+1: memory.logits, best and lse of the group's outputs.
void compute_layer(const LayerContext& context, int stage, const GroupStep& group,
                   const LayerWeights& weights);

}  // namespace hydrant
