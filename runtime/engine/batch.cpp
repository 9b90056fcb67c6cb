#include "runtime/engine/batch.hpp"

#include <algorithm>

#include "runtime/base/aligned.hpp"

namespace hydrant {
namespace {

// Tokens of a row for which there is room from the start. A row may end long before its limit,
// which may be in the millions.
constexpr size_t kUsualTokens = 1024;

size_t usual_tokens(const Request& request) {
  return std::min(size_t(request.max_new_tokens), kUsualTokens);
}

}  // namespace

Batch::Batch(std::span<const Request> rows, const BatchShape& shape, const JobLimits& limits)
    : rows_(rows), prefill_tokens_(shape.prefill_tokens), limits_(limits) {
  places_.resize(size_t(limits.places()));
  for (size_t i = 0; i < places_.size(); i++) {
    places_[i].group = int32_t(i) / limits.rows_per_group;
    places_[i].place = int32_t(i) % limits.rows_per_group;
  }
}

LiveRow* Batch::admit_next(int64_t& tokens) {
  if (next_ == rows_.size()) return nullptr;
  const Request& request = rows_[next_];
  const auto length = int64_t(request.prompt.size());
  if (tokens > 0 && tokens + length > prefill_tokens_) return nullptr;
  const auto free = std::find_if(places_.begin(), places_.end(),
                                 [](const LiveRow& row) { return row.request == nullptr; });
  if (free == places_.end()) return nullptr;
  tokens += length;
  free->request = &request;
  free->index = next_++;
  free->processed = 0;
  free->completion = Completion{};
  free->completion.tokens.reserve(usual_tokens(request));
  free->seen.clear();
  if (request.sampling.repetition_penalty != 1) {
    free->seen.reserve(request.prompt.size() + usual_tokens(request));
    free->seen = request.prompt;
    std::sort(free->seen.begin(), free->seen.end());
    free->seen.erase(std::unique(free->seen.begin(), free->seen.end()), free->seen.end());
  }
  return &*free;
}

bool Batch::plan(Step& step) const {
  step.groups.resize(size_t(limits_.groups));
  step.clear();
  int32_t outputs = 0;
  size_t pieces = 0;
  for (int32_t g = 0; g < limits_.groups; g++) {
    GroupStep& group = step.groups[size_t(g)];
    group.group = g;
    plan_decode(step, group);
    plan_prompts(step, group);
    for (Piece& piece : group.pieces) piece.number = pieces++;
    group.first_output = outputs;
    outputs += int32_t(group.outputs.size());
    if (!group.pieces.empty()) step.active.push_back(size_t(g));
  }
  return !step.ids.empty();
}

void Batch::plan_decode(Step& step, GroupStep& group) const {
  const auto first = int32_t(step.ids.size());
  for (int32_t place = 0; place < limits_.rows_per_group; place++) {
    const LiveRow& row = places_[index(group.group, place)];
    if (!row.request || row.processed == 0) continue;
    const auto token = int32_t(step.ids.size());
    group.decode.push_back({place, row.processed, 1, token - first});
    group.outputs.push_back({place, token});
    step.ids.push_back(row.completion.tokens.back().id);
    step.positions.push_back(row.processed);
  }
  const size_t count = group.decode.size();
  if (count > 0) group.pieces.push_back({true, first, int32_t(count), 0, count});
  step.decoded += int64_t(count);
}

namespace {

// Appends the chunks of one prompt, filling the last piece of the group first.
void cut(Step& step, GroupStep& group, int32_t place, int32_t length, int32_t chunk_tokens) {
  for (int32_t done = 0; done < length;) {
    if (group.pieces.empty() || group.pieces.back().decode ||
        group.pieces.back().tokens == chunk_tokens) {
      group.pieces.push_back({false, int32_t(step.ids.size()) + done, 0, step.chunks.size(), 0});
    }
    Piece& piece = group.pieces.back();
    const int32_t count = std::min(length - done, chunk_tokens - piece.tokens);
    step.chunks.push_back({{place, done, count, piece.tokens}, step.prompts.size() - 1});
    piece.tokens += count;
    piece.segments++;
    done += count;
  }
}

}  // namespace

void Batch::plan_prompts(Step& step, GroupStep& group) const {
  for (int32_t place = 0; place < limits_.rows_per_group; place++) {
    const LiveRow& row = places_[index(group.group, place)];
    if (!row.request || row.processed > 0) continue;
    const std::vector<int32_t>& ids = row.request->prompt;
    const auto length = int32_t(ids.size());

    StepPrompt prompt;
    prompt.length = length;
    if (const int64_t runs = prompt_runs_of(*row.request); runs > 0) {
      prompt.run = step.prompt_runs;
      prompt.runs = ceil_div(int64_t{length}, int64_t{kRunSlots});
      step.prompt_runs += runs;
    }
    if (is_scored(*row.request)) {
      prompt.stat = step.prompt_stats;
      step.prompt_stats += prompt_stats_of(length);
    }
    step.prompts.push_back(prompt);

    cut(step, group, place, length, limits_.chunk_tokens);
    step.ids.insert(step.ids.end(), ids.begin(), ids.end());
    for (int32_t p = 0; p < length; p++) step.positions.push_back(p);
    group.outputs.push_back({place, int32_t(step.ids.size()) - 1});
  }
}

void Batch::advance(const GroupStep& group) {
  for (const StepOutput& output : group.outputs) {
    LiveRow& live = row(group.group, output.place);
    live.processed =
        live.processed == 0 ? int32_t(live.request->prompt.size()) : live.processed + 1;
  }
}

}  // namespace hydrant
