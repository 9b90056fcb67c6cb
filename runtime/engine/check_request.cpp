#include "runtime/engine/check_request.hpp"

#include <cmath>
#include <span>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/engine/limits.hpp"

namespace hydrant {
namespace {

void check_ids(const ModelSpec& spec, std::span<const int32_t> ids, std::string_view what) {
  for (const int32_t id : ids)
    if (id < 0 || id >= spec.vocab)
      fail(Fault::bad_input, "{} id {}: must be 0 to {}, the model's vocabulary", what, id,
           spec.vocab - 1);
}

void check_length(const ModelSpec& spec, const Request& row) {
  if (passes_context_limit(row)) return;
  const auto limit = size_t(spec.max_positions), length = row.prompt.size();
  if (length > limit)
    fail(Fault::bad_input, "the prompt has {} tokens, it may have 1 to {}, the model's positions",
         length, limit);
  if (!row.forced.empty() && length + row.forced.size() - 1 > limit)
    fail(
        Fault::bad_input,
        "context and continuation have {} tokens, they may have 2 to {}, the model's positions and "
        "one that is judged but not fed",
        length + row.forced.size(), limit + 1);
}

void check_sampling(const Sampling& s) {
  const auto need = [&](bool holds, std::string_view key, auto value, std::string_view rule) {
    if (!holds) fail(Fault::bad_input, "{} is {}, must be {}", key, value, rule);
  };
  need(std::isfinite(s.temperature) && s.temperature >= 0, "temperature", s.temperature,
       "at least 0");
  need(s.top_k >= 0, "top_k", s.top_k, "at least 0");
  need(s.top_p > 0 && s.top_p <= 1, "top_p", s.top_p, "above 0 and at most 1");
  need(s.min_p >= 0 && s.min_p <= 1, "min_p", s.min_p, "from 0 to 1");
  need(std::isfinite(s.repetition_penalty) && s.repetition_penalty > 0, "repetition_penalty",
       s.repetition_penalty, "above 0");
}

void check_plans(const ModelSpec& spec, const Request& row) {
  ensure(row.plans.size() == size_t(spec.layers), "plans for {} layers of {}", row.plans.size(),
         spec.layers);
  for (const policy::RowPlan& plan : row.plans) {
    const policy::SlotLayout& s = plan.slots;
    ensure(s.sinks >= 0 && s.heavy >= 0 && s.recent >= 0 && s.capacity() > 0,
           "a layout of {} + {} + {} slots", s.sinks, s.heavy, s.recent);
    if (plan.positions == policy::Positions::cache && spec.block.rotary.dims == 0)
      fail(Fault::bad_input,
           "positions within the cache need rotary embedding, which {} does not have", spec.family);
  }
}

}  // namespace

void check_request(const ModelSpec& spec, const Request& row) {
  if (row.prompt.empty()) fail(Fault::bad_input, "the prompt has no tokens");
  if (row.max_new_tokens < 1)
    fail(Fault::bad_input, "max_new_tokens is {}, must be at least 1", row.max_new_tokens);
  if (row.top_logprobs < 0 || row.top_logprobs > 20)
    fail(Fault::bad_input, "top_logprobs is {}, must be from 0 to 20", row.top_logprobs);
  if (!row.forced.empty() && row.forced.size() != size_t(row.max_new_tokens))
    fail(Fault::bad_input, "{} forced tokens, but max_new_tokens is {}", row.forced.size(),
         row.max_new_tokens);
  check_ids(spec, row.prompt, "prompt");
  check_ids(spec, row.forced, "continuation");
  check_plans(spec, row);
  check_length(spec, row);
  check_sampling(row.sampling);
}

}  // namespace hydrant
