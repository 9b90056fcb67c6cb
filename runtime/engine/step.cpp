#include "runtime/engine/step.hpp"

#include <algorithm>

namespace hydrant {

// A chunk ends where its prompt ends or where its piece is full.
std::span<const StepOutput> outputs_of(const GroupStep& group, const Piece& piece) {
  const auto from = [&](int32_t token) {
    return std::partition_point(group.outputs.begin(), group.outputs.end(),
                                [&](const StepOutput& o) { return o.token < token; });
  };
  return {from(piece.token), from(piece.token + piece.tokens)};
}

size_t most_chunks(const JobLimits& limits) {
  return size_t(limits.prompts) + size_t(limits.prompt_tokens / limits.chunk_tokens);
}

void Step::reserve(const JobLimits& limits) {
  ids.reserve(size_t(limits.step_tokens));
  positions.reserve(size_t(limits.step_tokens));
  chunks.reserve(most_chunks(limits));
  prompts.reserve(size_t(limits.prompts));
  groups.resize(size_t(limits.groups));
  active.reserve(groups.size());
  for (GroupStep& group : groups) {
    group.decode.reserve(size_t(limits.rows_per_group));
    group.outputs.reserve(size_t(limits.rows_per_group));
    group.pieces.reserve(most_chunks(limits) + 1);
  }
}

void Step::clear() {
  ids.clear();
  positions.clear();
  chunks.clear();
  prompts.clear();
  active.clear();
  decoded = prompt_runs = prompt_stats = 0;
  for (GroupStep& group : groups) {
    group.decode.clear();
    group.pieces.clear();
    group.outputs.clear();
  }
}

}  // namespace hydrant
