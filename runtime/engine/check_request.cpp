#include "runtime/engine/check_request.hpp"

#include <cmath>
#include <span>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/engine/limits.hpp"

namespace hydrant {
namespace {

void check_ids(const ModelSpec& spec, std::span<const int32_t> ids, size_t index,
               std::string_view what) {
  for (const int32_t id : ids)
    if (id < 0 || id >= spec.vocab)
      fail(Fault::bad_input, "row {}: {} id {} is not in the vocabulary of {}", index, what, id,
           spec.vocab);
}

void check_length(const ModelSpec& spec, const Request& row, size_t index) {
  if (passes_context_limit(row)) return;
  const auto limit = size_t(spec.max_positions), length = row.prompt.size();
  if (length > limit)
    fail(Fault::bad_input, "row {}: the prompt has {} tokens, the model has {} positions", index,
         length, limit);
  // The last forced token is judged but not fed.
  if (!row.forced.empty() && length + row.forced.size() - 1 > limit)
    fail(Fault::bad_input,
         "row {}: context and continuation have {} tokens, the model has {} positions", index,
         length + row.forced.size() - 1, limit);
}

void check_sampling(const Sampling& s, size_t index) {
  const auto need = [&](bool holds, std::string_view key, auto value, std::string_view rule) {
    if (!holds) fail(Fault::bad_input, "row {}: {} is {}, must be {}", index, key, value, rule);
  };
  need(std::isfinite(s.temperature) && s.temperature >= 0, "temperature", s.temperature,
       "at least 0");
  need(s.top_k >= 0, "top_k", s.top_k, "at least 0");
  need(s.top_p > 0 && s.top_p <= 1, "top_p", s.top_p, "above 0 and at most 1");
  need(s.min_p >= 0 && s.min_p <= 1, "min_p", s.min_p, "from 0 to 1");
  need(std::isfinite(s.repetition_penalty) && s.repetition_penalty > 0, "repetition_penalty",
       s.repetition_penalty, "above 0");
}

void check_plans(const ModelSpec& spec, const Request& row, size_t index) {
  ensure(row.plans.size() == size_t(spec.layers), "row {}: plans for {} layers of {}", index,
         row.plans.size(), spec.layers);
  for (const policy::RowPlan& plan : row.plans) {
    const policy::SlotLayout& s = plan.slots;
    ensure(s.sinks >= 0 && s.heavy >= 0 && s.recent >= 0 && s.capacity() > 0,
           "row {}: a layout of {} + {} + {} slots", index, s.sinks, s.heavy, s.recent);
    if (plan.positions == policy::Positions::cache && spec.block.rotary.dims == 0)
      fail(Fault::bad_input,
           "row {}: positions within the cache need rotary embedding, which {} does not have",
           index, spec.family);
  }
}

}  // namespace

void check_request(const ModelSpec& spec, const Request& row, size_t index) {
  if (row.prompt.empty()) fail(Fault::bad_input, "row {}: the prompt has no tokens", index);
  if (row.max_new_tokens < 1)
    fail(Fault::bad_input, "row {}: max_new_tokens is {}, must be at least 1", index,
         row.max_new_tokens);
  if (row.top_logprobs < 0 || row.top_logprobs > 20)
    fail(Fault::bad_input, "row {}: top_logprobs is {}, must be from 0 to 20", index,
         row.top_logprobs);
  if (!row.forced.empty() && row.forced.size() != size_t(row.max_new_tokens))
    fail(Fault::bad_input, "row {}: {} forced tokens, but max_new_tokens is {}", index,
         row.forced.size(), row.max_new_tokens);
  check_ids(spec, row.prompt, index, "prompt");
  check_ids(spec, row.forced, index, "continuation");
  check_plans(spec, row, index);
  check_length(spec, row, index);
  check_sampling(row.sampling, index);
}

}  // namespace hydrant
