// What a backend computes: coarse operations on explicit streams. All activations are f32, dense,
// row-major.
//
// Calls only enqueue; arguments are taken by value, and everything they point to must stay as it is
// until the stream has passed the call. Spans of segments are host memory. Shapes are checked once
// for all backends (checks.hpp). In a step the tokens of all its segments lie one behind another: t
// is their number.
#pragma once
#include <span>

#include "runtime/device/cache_view.hpp"
#include "runtime/device/kinds.hpp"
#include "runtime/device/stream.hpp"
#include "runtime/device/tensor.hpp"
#include "runtime/device/weight.hpp"

namespace hydrant {

// One row's part in a step: tokens [token, token + count) of the step at positions first, first +
// 1, ...
struct Segment {
  int32_t place = 0;  // the row's place in its group
  int32_t first = 0, count = 0;
  int32_t token = 0;
};

// A chunk of one row's prompt, with where the prompt's keys and values of this layer are gathered:
// slot = position. `keys` are rotated, ready to attend. `raw` (Positions::cache only, else null
// data) gets the unrotated keys. `length` is the whole prompt's.
struct PromptSegment {
  Segment segment;
  KvRuns kv, raw;
  float *sum = nullptr,
        *last = nullptr;  // [kv_head, stats_stride] column sums, null when not scored
  int32_t length = 0, stats_stride = 0;
};

// Rotates the first `dims` components of each head; component i pairs with i + dims / 2 (Hugging
// Face's "half" order). `table` holds [places, dims / 2, 2] cosine and sine; null table or dims 0:
// no rotation.
struct Rotary {
  int32_t dims = 0;
  ConstTensor table;
};

struct HeadShape {
  int32_t heads = 0, kv_heads = 0, head_dim = 0;
};

// out[i] = (accumulate ? out[i] : 0) + row indices[i] + offset of table. indices i32 [t], out [t,
// table.k]. partial: out[i] stays as it is where the table has no such row (another run of the
// table's panels does).
struct EmbedArgs {
  ConstTensor indices;
  int32_t offset = 0;
  Weight table;
  bool accumulate = false, partial = false;
  Tensor out;
};
// table[i, j] = (cos, sin)(positions[i] * inverse_frequency[j]); positions i32 [t], out f32 [t, j,
// 2]
struct RotaryTableArgs {
  ConstTensor positions, inverse_frequency;
  Tensor out;
};
// in, out [t, h]; gain, bias [h]; bias may be missing. in and out may be the same.
struct NormalizeArgs {
  NormKind kind = NormKind::layer;
  ConstTensor in, gain, bias;
  float epsilon = 0;
  Tensor out;
};
// out [t, n] = after(in [t, k] . W^T + bias) + residual, n = the sum of the parts' n, the parts
// side by side in out. bias [n] and residual [t, n] may be missing; residual and out may be the
// same memory.
struct LinearArgs {
  ConstTensor in;
  WeightParts parts;
  ConstTensor bias{}, residual{};
  Activation after = Activation::none;
  Tensor out;
};
// out [t, f] = kind(in[:, 0:f]) * in[:, f:2f]
struct GateArgs {
  Activation kind = Activation::silu;
  ConstTensor in;
  Tensor out;
};
// out [i] = in [indices[i]]; indices i32 [r], in [t, h], out [r, h]
struct GatherArgs {
  ConstTensor indices, in;
  Tensor out;
};

// qkv [t, (heads + 2 kv_heads) head_dim] -> q [t, heads, head_dim], rotated unless the row's plan
// says Positions::cache; k (likewise) and v into landing rows, whose position is set.
struct SplitDecodeArgs {
  ConstTensor qkv;
  Rotary rotary;
  HeadShape shape;
  std::span<const Segment> segments;
  CacheView cache;
  Tensor q;
};
// The same for prompt chunks: q rotated, k and v at slot = position of the segment's runs. dtype:
// of the runs.
struct SplitPromptArgs {
  ConstTensor qkv;
  Rotary rotary;
  HeadShape shape;
  std::span<const PromptSegment> segments;
  DType dtype = DType::f32;
  Tensor q;
};

// Causal attention of a chunk over slots [0, own position] of its prompt. out [t, heads, head_dim],
// lse [t, heads]. A query's bits do not depend on how its prompt is cut into chunks.
struct AttendPromptArgs {
  ConstTensor q;
  HeadShape shape;
  std::span<const PromptSegment> segments;
  DType dtype = DType::f32;
  float scale = 1;
  Tensor out, lse;
};
// Adds exp(logit - lse), summed over the chunk's queries in ascending order and the query heads of
// a KV head, to sum[kv_head, key]; sets last[kv_head, key] where the chunk holds the prompt's last
// query. The caller zeroes sum before the first chunk.
struct SummarizePromptArgs {
  ConstTensor q, lse;
  HeadShape shape;
  std::span<const PromptSegment> segments;
  DType dtype = DType::f32;
  float scale = 1;
};
// Ends one row's prefill in one layer: chooses the slots of each KV head by the row's plan (all
// when the prompt fits) and puts keys, values, positions and scores into the row's home. With
// prompt.kv = home row nothing is copied (allowed only when the prompt fits). Keys come from
// prompt.raw where it is given.
struct StorePromptArgs {
  PromptSegment prompt;
  HeadShape shape;
  CacheView to;
};

// One query per segment over its row's live rows. logits [t, heads, cache.slots] and lse [t, heads]
// may be missing when no row is scored. `ranks` is the rotary table by rank, for rows of
// Positions::cache.
struct AttendDecodeArgs {
  ConstTensor q;
  HeadShape shape;
  std::span<const Segment> segments;
  CacheView cache;
  Rotary ranks;
  float scale = 1;
  Tensor out, logits, lse;
};
// Scores and victims of rows that evict or are scored (policies/settle.hpp).
struct SettleArgs {
  ConstTensor logits, lse;
  HeadShape shape;
  std::span<const Segment> segments;
  CacheView cache;
};
// The decode step's two row moves: leaving -> victim, landing -> ring. `from` and `to` may be the
// same view.
struct StoreDecodeArgs {
  std::span<const Segment> segments;
  CacheView from, to;
};

// best i32 [r]: arg max (the lowest id among equals), lse f32 [r]: log of the sum of exp, of logits
// [r, vocab]. A row with a NaN or no finite maximum gets lse NaN.
struct SummarizeLogitsArgs {
  ConstTensor logits;
  Tensor best, lse;
};

// The most that a job gives to operations at once.
struct WorkSize {
  HeadShape shape;
  int64_t tokens = 0, width = 0;  // of a product's input
  int32_t rows = 0, slots = 0;    // of a decode step, and of their caches
  int32_t last_position = -1;     // of rows of Positions::cache; -1: there are none
  int32_t prompts = 0;            // in one call
  int32_t prompt_length = 0;      // of the longest
};

class Ops {
 public:
  virtual ~Ops() = default;
  // Memory that operations on such work take for themselves, at most; kept from call to call.
  virtual size_t scratch_bytes(const WorkSize& work) const = 0;
  virtual size_t panel_bytes(DType format, int64_t k) const = 0;
  // Packs up to 16 rows of W as they stand in the file into one panel; missing rows are zero. Host
  // memory; any thread.
  virtual void pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows,
                          std::byte* panel) const = 0;
  virtual size_t kv_run_bytes(DType dtype, int32_t head_dim) const = 0;

  virtual void embed(Stream&, const EmbedArgs&) = 0;
  virtual void rotary_table(Stream&, const RotaryTableArgs&) = 0;
  virtual void normalize(Stream&, const NormalizeArgs&) = 0;
  virtual void linear(Stream&, const LinearArgs&) = 0;
  virtual void gate(Stream&, const GateArgs&) = 0;
  virtual void gather(Stream&, const GatherArgs&) = 0;
  virtual void split_decode(Stream&, const SplitDecodeArgs&) = 0;
  virtual void split_prompt(Stream&, const SplitPromptArgs&) = 0;
  virtual void attend_prompt(Stream&, const AttendPromptArgs&) = 0;
  virtual void summarize_prompt(Stream&, const SummarizePromptArgs&) = 0;
  virtual void store_prompt(Stream&, const StorePromptArgs&) = 0;
  virtual void attend_decode(Stream&, const AttendDecodeArgs&) = 0;
  virtual void settle(Stream&, const SettleArgs&) = 0;
  virtual void store_decode(Stream&, const StoreDecodeArgs&) = 0;
  virtual void summarize_logits(Stream&, const SummarizeLogitsArgs&) = 0;

  // What products with weights of this format round their input to where they need not be exact.
  virtual Activations activations(DType format) const = 0;
};

}  // namespace hydrant
