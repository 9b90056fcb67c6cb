#include "runtime/engine/attention_memory.hpp"

#include <algorithm>

#include "runtime/base/aligned.hpp"

namespace hydrant {

AttentionMemory::AttentionMemory(Arena& arena, const Ops& ops, const ModelSpec& spec,
                                 const JobLimits& limits, DType kv_dtype) {
  const BlockSpec& block = spec.block;
  const int64_t piece = limits.piece_tokens, kv_heads = block.kv_heads;
  const int64_t half = block.rotary.dims / 2;
  const auto take = [&](Shape shape) { return arena.take(DType::f32, shape); };
  if (half > 0) {
    rotary = take({limits.step_tokens, half, 2});
    inverse_frequency = take({half});
    if (limits.ranks > 0) ranks = take({limits.ranks, half, 2});
  }
  qkv = take({piece, spec.qkv_width()});
  q = take({piece, block.heads, block.head_dim});
  attended = take({piece, block.heads, block.head_dim});
  lse = take({piece, block.heads});
  if (limits.scored) {
    const int32_t most = *std::max_element(limits.slots.begin(), limits.slots.end());
    logits =
        take({limits.rows_per_group, block.heads, align_up(int64_t{most} + 1, int64_t{kRunSlots})});
  }
  prompt_kv.run_bytes = ops.kv_run_bytes(kv_dtype, block.head_dim);
  prompt_kv.data = static_cast<std::byte*>(
      arena.take_bytes(prompt_kv.run_bytes * size_t(limits.prompt_runs * kv_heads)));
  prompt_sum = take({limits.prompt_stats * kv_heads});
  prompt_last = take({limits.prompt_stats * kv_heads});
  zeros = take({limits.longest_stats * kv_heads});
}

}  // namespace hydrant
