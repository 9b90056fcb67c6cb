#include "runtime/engine/generation_loop.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/device/traced.hpp"
#include "runtime/engine/compute_layer.hpp"
#include "runtime/engine/views.hpp"

namespace hydrant {
namespace {

using Clock = std::chrono::steady_clock;

// The model has no position for the row's next token.
bool at_context_limit(const ModelSpec& spec, const LiveRow& row) {
  return row.processed >= spec.max_positions && !passes_context_limit(*row.request);
}

void remember(LiveRow& row, int32_t id) {
  if (row.request->sampling.repetition_penalty == 1) return;
  const auto at = std::lower_bound(row.seen.begin(), row.seen.end(), id);
  if (at == row.seen.end() || *at != id) row.seen.insert(at, id);
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

HiddenShape hidden_shape(const ModelSpec& spec, const JobLimits& limits) {
  return {.tokens = limits.step_tokens,
          .piece_tokens = limits.piece_tokens,
          .pieces = most_chunks(limits) + size_t(limits.groups),
          .width = spec.hidden,
          .stages = spec.layers + 1};
}

GenerationLoop::GenerationLoop(const LoopParts& parts, const JobLimits& limits)
    : parts_(parts),
      limits_(limits),
      device_side_{parts.ops, parts.compute, parts.memory.attention},
      prompts_(size_t(parts.spec.layers)),
      sampler_(parts.spec.vocab) {
  step_.reserve(limits);
  for (auto& segments : prompts_) segments.reserve(most_chunks(limits));
  active_.reserve(size_t(limits.groups));
  pieces_.reserve(hidden_shape(parts.spec, limits).pieces);
  for (int32_t rank = 0; rank < limits.ranks; rank++)
    parts.memory.rank_places.as<int32_t>()[rank] = rank;
  prepare(device_side_);
  if (parts.host_side) prepare(*parts.host_side);
}

// What is the same in every step.
void GenerationLoop::prepare(const AttentionSide& side) {
  const AttentionMemory& memory = side.memory;
  const RotarySpec& rotary = parts_.spec.block.rotary;
  const std::vector<float> zeros(size_t(memory.zeros.shape.count())),
      frequency(rotary.inverse_frequency.begin(), rotary.inverse_frequency.end());
  side.stream.copy(memory.zeros.data, zeros.data(), zeros.size() * sizeof(float));
  if (rotary.dims > 0) {
    side.stream.copy(memory.inverse_frequency.data, frequency.data(),
                     frequency.size() * sizeof(float));
    if (limits_.ranks > 0)
      side.ops.rotary_table(side.stream,
                            {parts_.memory.rank_places, memory.inverse_frequency, memory.ranks});
  }
  side.stream.synchronize();
}

RunFigures GenerationLoop::run(std::span<const Request> rows, const BatchShape& shape,
                               const Listener& listener) {
  figures_ = {};
  figures_.kv_bytes = parts_.cache.bytes();
  Batch batch(rows, shape, limits_);
  Cancellation cancellation(listener);
  while (true) {
    if (cancellation.ask()) {
      cancel(batch, rows.size(), listener);
      return figures_;
    }
    batch.admit([&](LiveRow& row) {
      parts_.cache.admit(row.group, row.place, row.request->plans);
      parts_.caches.admit(row.group, row.place);
    });
    if (!batch.plan(step_)) return figures_;
    run_step(batch, listener, cancellation);
  }
}

void GenerationLoop::run_step(Batch& batch, const Listener& listener, Cancellation& cancellation) {
  const auto begin = Clock::now();
  parts_.compute.enter({figures_.steps + 1, "inputs", -1});
  begin_step();
  StepSeconds pieces;
  const int stages = parts_.spec.stages();
  for (int stage = 0; stage < stages; stage++) {
    parts_.weights.prefetch((stage + 1) % stages);
    const LayerWeights weights = parts_.weights.acquire(stage, parts_.compute);
    const LayerContext context{parts_.spec,      parts_.ops,    parts_.compute, parts_.weights,
                               parts_.caches,    parts_.hidden, parts_.memory,  device_side_,
                               parts_.host_side, step_,         prompts_,       pieces,
                               cancellation};
    for (size_t i = 0; i < step_.active.size(); i++) {
      const GroupStep& group = step_.groups[step_.active[i]];
      prefetch_cache_after(stage, i);
      {
        const Traced traced(parts_.compute, 0, "stage {} group {}", stage, group.group);
        parts_.compute.enter(part_of(stage));
        compute_layer(context, stage, group, weights);
      }
      if (stage == stages - 1) {
        // Once all layers have been committed; the first head was computed beside the last stores.
        if (i == 0) parts_.caches.finish_step(parts_.compute);
        choose(batch, group, listener);
      } else if (cancellation.said()) {
        broken_ = true;
        return;
      }
    }
    parts_.weights.release(stage, parts_.compute);
  }
  // Device time of pieces cannot be told apart from the host, so a step that does both is divided
  // as its pieces' host time was, which on an inline stream is all of it.
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const double decode = step_.prompts.empty() ? 1
                        : step_.decoded == 0  ? 0
                                              : pieces.decode / (pieces.decode + pieces.prefill);
  figures_.decode_seconds += seconds * decode;
  figures_.prefill_seconds += seconds * (1 - decode);
  if (trace::on())
    trace::add({"steps", fmt::format("step {}", figures_.steps + 1), begin, Clock::now(), 0});
  figures_.steps++;
  figures_.decode_steps += step_.decoded > 0;
}

WorkPart GenerationLoop::part_of(int stage) const {
  if (stage == 0) return {figures_.steps + 1, "embedding", -1};
  if (stage + 1 == parts_.spec.stages()) return {figures_.steps + 1, "head", -1};
  return {figures_.steps + 1, "layer", stage - 1};
}

void GenerationLoop::prefetch_cache_after(int stage, size_t active) {
  const bool last_group = active + 1 == step_.active.size();
  const int32_t layer = stage - 1 + (last_group || stage == 0);
  if (layer >= parts_.spec.layers) return;
  const size_t next = stage == 0 || last_group ? 0 : active + 1;
  parts_.caches.prefetch({layer, step_.groups[step_.active[next]].group});
}

void GenerationLoop::begin_step() {
  const StepMemory& memory = parts_.memory;
  for (auto& segments : prompts_) segments.clear();
  active_.clear();
  for (const size_t g : step_.active)
    active_.push_back({step_.groups[g].group, step_.groups[g].decode});
  parts_.caches.begin_step(active_);
  pieces_.clear();
  for (const GroupStep& group : step_.groups)
    for (const Piece& piece : group.pieces) pieces_.push_back({piece.token, piece.tokens});
  parts_.hidden.begin_step(pieces_);
  std::copy(step_.ids.begin(), step_.ids.end(), memory.ids.as<int32_t>());
  std::copy(step_.positions.begin(), step_.positions.end(), memory.positions.as<int32_t>());
  auto* output = memory.outputs.as<int32_t>();
  for (const GroupStep& group : step_.groups)
    for (const Piece& piece : group.pieces)
      for (const StepOutput& o : outputs_of(group, piece)) *output++ = o.token - piece.token;
  if (parts_.spec.block.rotary.dims == 0) return;
  const auto tokens = int64_t(step_.ids.size());
  const auto rotations = [&](const AttentionSide& side) {
    side.ops.rotary_table(side.stream,
                          {first_rows(memory.positions, tokens), side.memory.inverse_frequency,
                           first_rows(side.memory.rotary, tokens)});
  };
  rotations(device_side_);
  if (parts_.host_side) rotations(*parts_.host_side);
}

void GenerationLoop::choose(Batch& batch, const GroupStep& group, const Listener& listener) {
  parts_.compute.synchronize();
  for (const StepOutput& output : group.outputs)
    if (const LiveRow& row = batch.row(group.group, output.place); row.processed == 0)
      figures_.prompt_tokens += int64_t(row.request->prompt.size());
  batch.advance(group);
  const auto vocab = size_t(parts_.spec.vocab);
  for (size_t i = 0; i < group.outputs.size(); i++) {
    const RowLogits logits{{parts_.memory.logits.as<float>() + i * vocab, vocab},
                           parts_.memory.best.as<int32_t>()[i],
                           parts_.memory.lse.as<float>()[i]};
    choose(batch.row(group.group, group.outputs[i].place), logits, listener);
  }
}

void GenerationLoop::choose(LiveRow& row, const RowLogits& logits, const Listener& listener) {
  const Request& request = *row.request;
  std::vector<TokenChoice>& tokens = row.completion.tokens;
  row.completion.error = parts_.caches.failure(row.group, row.place);
  if (!row.completion.error.empty()) return end_row(row, Finish::failed, listener);
  if (!std::isfinite(logits.lse)) {
    row.completion.error = fmt::format("the logits of token {} are not finite", tokens.size());
    return end_row(row, Finish::failed, listener);
  }
  if (listener.on_logits) listener.on_logits(row.index, logits.values);
  tokens.push_back(sampler_.choose(logits, request, int32_t(tokens.size()), row.seen));
  figures_.generated_tokens++;
  const TokenChoice& token = tokens.back();
  remember(row, token.id);
  const bool wanted = !listener.on_token || listener.on_token(row.index, token);
  if (!wanted || contains(request.stop_ids, token.id))
    end_row(row, Finish::stop, listener);
  else if (tokens.size() == size_t(request.max_new_tokens) || at_context_limit(parts_.spec, row))
    end_row(row, Finish::length, listener);
}

void GenerationLoop::end_row(LiveRow& row, Finish how, const Listener& listener) {
  Completion completion = std::move(row.completion);
  completion.finish = how;
  if (row.request->report_kept && !broken_)
    for (int32_t layer = 0; layer < parts_.spec.layers; layer++)
      completion.kept.push_back(
          parts_.cache.kept(parts_.compute, layer, row.group, row.place, row.processed));
  row.request = nullptr;
  if (listener.on_done) listener.on_done(row.index, std::move(completion));
}

void GenerationLoop::cancel(Batch& batch, size_t rows, const Listener& listener) {
  parts_.compute.synchronize();
  for (LiveRow& row : batch.places())
    if (row.request) end_row(row, Finish::cancelled, listener);
  Completion never_begun;
  never_begun.finish = Finish::cancelled;
  for (size_t row = batch.begun(); row < rows; row++)
    if (listener.on_done) listener.on_done(row, Completion(never_begun));
}

}  // namespace hydrant
