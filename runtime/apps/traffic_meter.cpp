#include "runtime/apps/traffic_meter.hpp"

#include <fmt/format.h>

#include <optional>

#include "offload/disk_writes.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/base/log.hpp"
#include "runtime/engine/limits.hpp"

namespace hydrant {
namespace {

StepTraffic operator-(const StepTraffic& a, const StepTraffic& b) {
  return {a.from_host - b.from_host, a.from_disk - b.from_disk, a.file - b.file};
}

CacheMoves operator-(const CacheMoves& a, const CacheMoves& b) {
  return {a.to_device - b.to_device, a.to_host - b.to_host, a.read - b.read, a.written - b.written};
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  steps += other.steps;
  predicted += other.predicted;
  measured += other.measured;
  rows += other.rows;
  caches += other.caches;
  hidden += other.hidden;
  return *this;
}

TrafficMeter::TrafficMeter(LoadedModel& model)
    : weights_(model.prefetcher()),
      caches_(model.caches()),
      hidden_(model.hidden()),
      link_(double(model.plan().offload.link)),
      begin_(count()) {}

TrafficMeter::Count TrafficMeter::count() {
  Count now;
  if (caches_) {
    const CacheTraffic& all = caches_->traffic();
    now.caches = {all.to_device, all.to_host, all.read, all.written};
  }
  if (hidden_) now.hidden = {hidden_->traffic().to_device, hidden_->traffic().to_host, 0, 0};
  if (!weights_) return now;
  weights_->settle();
  const WeightTraffic& all = weights_->traffic();
  now.moved = StepTraffic{all.from_host, all.from_disk, all.file} - weights_->ahead();
  now.rows = all.rows;
  return now;
}

Traffic TrafficMeter::end(int64_t steps) {
  const Count now = count();
  const auto n = uint64_t(steps);
  Traffic t;
  t.steps = steps;
  if (weights_) {
    const StepTraffic step = weights_->step_traffic();
    t.predicted = {n * step.from_host, n * step.from_disk, n * step.file};
  }
  t.measured = now.moved - begin_.moved;
  t.rows = now.rows - begin_.rows;
  t.caches = now.caches - begin_.caches;
  t.hidden = now.hidden - begin_.hidden;
  return t;
}

void TrafficMeter::report(int64_t steps) {
  if ((!weights_ && !caches_ && !hidden_) || steps == 0) return;
  const Traffic t = end(steps);
  const auto per_step = [&](uint64_t bytes) { return bytes_text(bytes / uint64_t(t.steps)); };
  std::string parts;
  const auto add = [&](uint64_t measured, uint64_t predicted, const char* what) {
    if (measured == 0 && predicted == 0) return;
    parts +=
        fmt::format("{}{} {} ({})", parts.empty() ? "" : ", ", per_step(measured), what,
                    measured == predicted ? "as predicted" : "predicted " + per_step(predicted));
  };
  add(t.measured.from_host, t.predicted.from_host, "of weights host to device");
  add(t.measured.from_disk, t.predicted.from_disk, "of weights disk to device");
  add(t.measured.file, t.predicted.file, "read from the model's files");
  if (t.rows > 0)
    parts += fmt::format("{}{:.1f} embedding rows from the files", parts.empty() ? "" : ", ",
                         double(t.rows) / double(t.steps));
  const auto add_moved = [&](uint64_t bytes, const char* what) {
    if (bytes > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", per_step(bytes), what);
  };
  add_moved(t.hidden.to_device, "of hidden states to the device");
  add_moved(t.hidden.to_host, "of hidden states to the host");
  add_moved(t.caches.to_device, "of the cache to the device");
  add_moved(t.caches.to_host, "of the cache to the host");
  add_moved(t.caches.read, "of the cache read from disk");
  add_moved(t.caches.written, "of the cache written to disk");
  if (t.caches.written > 0) parts += fmt::format(" ({} in all)", bytes_text(t.caches.written));
  log::info("moved per step: {}{}", parts.empty() ? "nothing" : parts,
            link_ > 0 ? fmt::format("; link held to {:.1f} GB/s", link_ / 1e9) : "");
}

PredictedMoves& PredictedMoves::operator+=(const PredictedMoves& other) {
  moves += other.moves;
  all_written &= other.all_written;
  return *this;
}

PredictedMoves predicted_cache_moves(LoadedModel& model, const ModelSpec& spec, const Ops& ops,
                                     const BatchShape& shape, DType kv_dtype,
                                     std::span<const Request> rows) {
  PredictedMoves sum;
  if (!model.caches()) return sum;
  const JobLimits limits = job_limits(spec, rows, shape);
  KvShape kv{limits.groups,       limits.rows_per_group, spec.block.kv_heads,
             spec.block.head_dim, limits.slots,          kv_dtype};
  kv.heads = spec.block.heads;
  kv.resident = model.caches()->resident(kv);
  const CacheLayout layout = model.caches()->layout(kv, ops);
  // Counting what a row writes follows it token by token, and most rows are alike.
  struct Counted {
    policy::SlotLayout slots;
    int32_t prompt = 0, decoded = 0;
    std::optional<uint64_t> written;
  };
  std::vector<std::optional<Counted>> latest(size_t(spec.layers));
  const auto written = [&](int32_t layer, const policy::SlotLayout& slots, int32_t prompt,
                           int32_t decoded) {
    std::optional<Counted>& c = latest[size_t(layer)];
    if (!c || c->slots != slots || c->prompt != prompt || c->decoded != decoded)
      c = {slots, prompt, decoded, decode_written(layout, layer, slots, prompt, decoded)};
    return c->written;
  };
  for (size_t i = 0; i < rows.size(); i++) {
    const auto group = int32_t(i) / limits.rows_per_group,
               place = int32_t(i) % limits.rows_per_group;
    const bool on_disk = place >= layout.homes(group).first_on_disk();
    const int32_t prompt = int32_t(rows[i].prompt.size()), decoded = rows[i].max_new_tokens - 1;
    for (int32_t layer = 0; layer < spec.layers; layer++) {
      const policy::SlotLayout& slots = rows[i].plans[size_t(layer)].slots;
      sum.moves += layout.prompt_moves(layer, group, place, prompt, slots);
      for (int32_t token = 0; token < decoded; token++)
        sum.moves += layout.decode_moves(layer, group, place, prompt + token, slots);
      if (!on_disk) continue;
      const std::optional<uint64_t> bytes = written(layer, slots, prompt, decoded);
      sum.moves.written += bytes.value_or(0);
      sum.all_written &= bytes.has_value();
    }
  }
  return sum;
}

}  // namespace hydrant
