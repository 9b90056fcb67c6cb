// The working memory of the loop: carved once for a job, nothing is allocated while it runs.
#pragma once
#include <cstddef>

#include "runtime/device/device.hpp"
#include "runtime/engine/attention_memory.hpp"

namespace hydrant {

struct StepMemory {
  StepMemory(Device& device, const ModelSpec& spec, const JobLimits& limits, DType kv_dtype);

  // Bytes it takes, by the same layout.
  static size_t bytes(Device& device, const ModelSpec& spec, const JobLimits& limits,
                      DType kv_dtype);

  // Read and written by the host between steps: pinned.
  Tensor ids, positions;  // i32 [step tokens]
  // i32 [places]: last tokens of rows whose logits are wanted, counted from the beginning of their
  // piece
  Tensor outputs;
  Tensor logits;       // [rows per group, vocab]
  Tensor best, lse;    // i32, f32 [rows per group]
  Tensor rank_places;  // i32 [ranks]: 0, 1, 2, ...; null unless some row has Positions::cache

  // Of a whole step.
  Tensor last;  // [places, hidden]: what the last block made of `outputs`

  // Of one piece.
  Tensor embedded;    // [t, embedding]; null unless embeddings are projected
  Tensor normed;      // [t, hidden]
  Tensor normed_ffn;  // [t, hidden]; null unless the block is parallel
  Tensor up;          // [t, ffn or 2 ffn]
  Tensor gated;       // [t, ffn]; null unless gated

  // Of one group's rows whose logits are wanted.
  Tensor last_normed;     // [rows per group, hidden]
  Tensor last_projected;  // [rows per group, embedding]; null unless projected
  // As `logits`, and the same memory where the device computes in the host's. A card sums them up
  // in its own and copies them once.
  Tensor made_logits;

  AttentionMemory attention;  // on the device

 private:
  void lay_out(Arena& on_device, Arena& on_host, Device& device, const ModelSpec& spec,
               const JobLimits& limits, DType kv_dtype);
  StepMemory() = default;
  Buffer device_memory_, host_memory_;
};

}  // namespace hydrant
