// Token ids in, token ids out: the facade over batch, loop and sampler.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policies/policy.hpp"
#include "runtime/device/device.hpp"
#include "runtime/engine/feed.hpp"
#include "runtime/model/spec.hpp"

namespace hydrant {

// Greedy when temperature is 0. Applied in this order: repetition penalty (CTRL: logits of ids seen
// in prompt or output are divided, if positive, or multiplied by it), temperature, top-k, top-p,
// min-p.
struct Sampling {
  float temperature = 0;
  int32_t top_k = 0;  // 0: all
  float top_p = 1;    // 1: all
  float min_p = 0;    // 0: all
  float repetition_penalty = 1;
  uint64_t seed = 0;  // the row's own: its n-th draw depends on seed and n alone
};

// One row of the job. Checked before anything is computed (ids in range, length within the
// context).
struct Request {
  std::vector<int32_t> prompt;    // at least one id
  int32_t max_new_tokens = 0;     // at least 1
  std::vector<int32_t> stop_ids;  // the id that ends a row is its last token
  std::vector<int32_t>
      forced;  // score: fed instead of what would be chosen; max_new_tokens = its size
  std::vector<policy::RowPlan> plans;  // [layer]
  Sampling sampling;
  int32_t top_logprobs = 0;  // N best per token, 0..20
  bool report_kept = false;
};

enum class Finish : uint8_t { length, stop, cancelled, failed };

struct TokenChoice {
  int32_t id = 0;
  float logprob = 0;      // of `id`: log softmax of the unscaled logits
  bool is_greedy = true;  // `id` is the arg max
  struct Alternative {
    int32_t id;
    float logprob;
  };
  std::vector<Alternative> best;  // top_logprobs of them, highest first
};

struct Completion {
  std::vector<TokenChoice> tokens;
  Finish finish = Finish::length;
  std::string error;  // when finish is failed
  std::vector<std::vector<std::vector<int32_t>>>
      kept;  // [layer][kv head][positions, ascending], if asked for and not cancelled within a step
};

// Measured while running. Seconds are wall time; a step that does both counts each part on its own.
struct RunFigures {
  int64_t prompt_tokens = 0,
          generated_tokens = 0;  // generated: including the first, which prefill gives
  double prefill_seconds = 0, decode_seconds = 0;
  int64_t steps = 0, decode_steps = 0;  // all of them; those in which some row decodes
  size_t kv_bytes = 0;                  // homes as allocated, wherever they are
};

struct BatchShape {
  int32_t rows_per_group = 1, groups = 1;
  int32_t prefill_chunk = 128;    // tokens of prompts that go through a layer together
  int32_t prefill_tokens = 8192;  // prompt tokens admitted in one step (at least one prompt is)
};

// Called in the generating thread. A token: false ends the row (Finish::stop) after this token.
// Rows are indexed as in the job.
struct Listener {
  std::function<bool(size_t row, const TokenChoice& token)> on_token;  // may be empty
  // Once for every row of the job, in order of finishing. Rows that a cancelled run has not begun
  // come last, without tokens.
  std::function<void(size_t row, Completion&& completion)> on_done;
  // The unscaled logits [vocab] that a token is about to be chosen from; valid during the call. May
  // be empty.
  std::function<void(size_t row, std::span<const float> logits)> on_logits;
  // Asked before each piece of a layer: true ends the run, rows in flight with the tokens they
  // have. May be empty.
  std::function<bool()> cancelled;
};

// Bytes a run will take beside the weights; measured by the code that lays the memory
// out.
struct MemoryNeed {
  size_t kv =
      0;  // homes: rows * layers * kv heads * ceil16(slots + 1) * (2 * head_dim * element + 8)
  size_t workspace = 0;       // activations, one layer's prompt keys and values, logits, scratch
  size_t hidden = 0;          // hidden states on the host
  CacheNeed cache{};          // of homes elsewhere; `kv` is then what stays on the device
  size_t host_workspace = 0;  // of attention on the host

  size_t all_kv() const { return kv + cache.host + cache.disk; }
  size_t memory() const {  // of device and host
    return kv + workspace + hidden + cache.ring + cache.host + cache.staging + host_workspace;
  }
};

// Thread-compatible: one run at a time; the weights behind the feed are shared and immutable.
class Generator {
 public:
  // Without homes, caches and hidden states are on the device. All of them outlive this.
  Generator(Device& device, const ModelSpec& spec, WeightFeed& weights, BatchShape shape,
            DType kv_dtype, CacheHomes* homes = nullptr, HiddenHomes* hidden_homes = nullptr);
  ~Generator();

  // Sized for the largest of the rows. Throws bad_input naming the row for requests that cannot be
  // run.
  MemoryNeed need(std::span<const Request> rows) const;

  // Runs all rows to their end: up to rows_per_group * groups at once, admitted in order at step
  // borders as places fall free. A row that fails ends alone. Throws what stops the whole run
  // (out_of_memory, io).
  RunFigures run(std::span<const Request> rows, const Listener& listener);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hydrant
