// What attention works in, on one side.
#pragma once
#include "runtime/device/device.hpp"
#include "runtime/engine/limits.hpp"

namespace hydrant {

struct AttentionMemory {
  AttentionMemory() = default;
  AttentionMemory(Arena& arena, const Ops& ops, const ModelSpec& spec, const JobLimits& limits,
                  DType kv_dtype);

  // Of a whole step.
  Tensor rotary;  // [step tokens, dims / 2, 2]; null without rotary embedding

  // Of one piece.
  Tensor qkv;          // [t, qkv width]
  Tensor q, attended;  // [t, heads, head_dim]
  Tensor lse;          // [t, heads]
  Tensor logits;       // f32 [rows per group * heads * most slots]; null when nobody is scored

  // Prompts admitted in one step, one layer of them.
  KvRuns prompt_kv;                // [runs, kv head] of run_bytes
  Tensor prompt_sum, prompt_last;  // f32 [stats * kv heads]

  // The same in every step.
  Tensor zeros;              // f32 [longest stats * kv heads]
  Tensor inverse_frequency;  // f32 [dims / 2]; null without rotary embedding
  // [ranks, dims / 2, 2]: rotation by rank; null unless some row has Positions::cache
  Tensor ranks;
};

}  // namespace hydrant
