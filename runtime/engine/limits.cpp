#include "runtime/engine/limits.hpp"

#include <algorithm>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cache_view.hpp"

namespace hydrant {

bool needs_prompt_room(const policy::RowPlan& plan, int32_t length) {
  return plan.positions == policy::Positions::cache || length > plan.slots.capacity();
}

bool needs_prompt_room(const Request& row) {
  return std::any_of(row.plans.begin(), row.plans.end(), [&](const policy::RowPlan& plan) {
    return needs_prompt_room(plan, int32_t(row.prompt.size()));
  });
}

bool is_scored(const Request& row) {
  return std::any_of(row.plans.begin(), row.plans.end(),
                     [](const policy::RowPlan& plan) { return plan.scored; });
}

bool passes_context_limit(const Request& row) {
  return std::all_of(row.plans.begin(), row.plans.end(), [](const policy::RowPlan& plan) {
    return plan.positions == policy::Positions::cache;
  });
}

int64_t prompt_runs_of(const Request& row) {
  if (!needs_prompt_room(row)) return 0;
  const bool raw = std::any_of(row.plans.begin(), row.plans.end(), [](const auto& plan) {
    return plan.positions == policy::Positions::cache;
  });
  return ceil_div(int64_t(row.prompt.size()), int64_t{kRunSlots}) * (raw ? 2 : 1);
}

int64_t prompt_stats_of(int32_t length) { return align_up(int64_t{length}, int64_t{kRunSlots}); }

namespace {

// What the prompts admitted in one step add up to.
struct Admitted {
  int64_t prompts = 0, tokens = 0, runs = 0, stats = 0;

  void add(const Request& row, int64_t sign) {
    prompts += sign;
    tokens += sign * int64_t(row.prompt.size());
    runs += sign * prompt_runs_of(row);
    if (is_scored(row)) stats += sign * prompt_stats_of(int32_t(row.prompt.size()));
  }
};

// Any step admits neighbours in the order of input: the sums are the largest over all windows that
// the limits allow.
void add_windows(JobLimits& limits, std::span<const Request> rows, const BatchShape& shape) {
  Admitted window;
  int64_t tokens = 0;
  size_t end = 0;
  for (size_t begin = 0; begin < rows.size(); begin++) {
    while (end < rows.size() && window.prompts < limits.places() &&
           (window.prompts == 0 ||
            window.tokens + int64_t(rows[end].prompt.size()) <= shape.prefill_tokens))
      window.add(rows[end++], 1);
    limits.prompts = std::max(limits.prompts, int32_t(window.prompts));
    tokens = std::max(tokens, window.tokens);
    limits.prompt_runs = std::max(limits.prompt_runs, window.runs);
    limits.prompt_stats = std::max(limits.prompt_stats, window.stats);
    window.add(rows[begin], -1);
  }
  if (tokens > INT32_MAX - limits.places())
    fail(Fault::bad_input, "a prompt of {} tokens is too long", tokens);
  limits.prompt_tokens = int32_t(tokens);
}

}  // namespace

JobLimits job_limits(const ModelSpec& spec, std::span<const Request> rows,
                     const BatchShape& shape) {
  JobLimits limits;
  limits.rows_per_group = int32_t(std::min<size_t>(size_t(shape.rows_per_group), rows.size()));
  if (!rows.empty())
    limits.groups = int32_t(std::min<size_t>(size_t(shape.groups),
                                             ceil_div(rows.size(), size_t(limits.rows_per_group))));
  limits.slots.resize(size_t(spec.layers));
  for (const Request& row : rows) {
    const auto length = int32_t(row.prompt.size());
    limits.longest_prompt = std::max(limits.longest_prompt, length);
    for (size_t layer = 0; layer < row.plans.size(); layer++) {
      const policy::RowPlan& plan = row.plans[layer];
      limits.slots[layer] = std::max(limits.slots[layer], plan.slots.capacity());
      if (plan.positions != policy::Positions::cache) continue;
      limits.ranks = std::max(limits.ranks, int64_t{plan.slots.capacity()} + 1);
      limits.last_ranked = std::max(limits.last_ranked, length + row.max_new_tokens);
    }
    if (!is_scored(row)) continue;
    limits.scored = true;
    limits.longest_stats = std::max(limits.longest_stats, prompt_stats_of(length));
  }
  add_windows(limits, rows, shape);
  limits.chunk_tokens = std::min(shape.prefill_chunk, limits.prompt_tokens);
  limits.piece_tokens = std::max(limits.rows_per_group, limits.chunk_tokens);
  limits.step_tokens = limits.places() + limits.prompt_tokens;
  return limits;
}

}  // namespace hydrant
