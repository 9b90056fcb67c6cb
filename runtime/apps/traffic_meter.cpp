#include "runtime/apps/traffic_meter.hpp"

#include <fmt/format.h>

#include "runtime/apps/figures.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// The same of each kind of bytes.
template <class Join>
StepTraffic joined(const StepTraffic& a, const StepTraffic& b, const Join& join) {
  return {join(a.from_host, b.from_host), join(a.from_disk, b.from_disk), join(a.file, b.file)};
}

constexpr auto kPlus = [](uint64_t a, uint64_t b) { return a + b; };
constexpr auto kMinus = [](uint64_t a, uint64_t b) { return a - b; };

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  steps += other.steps;
  predicted = joined(predicted, other.predicted, kPlus);
  measured = joined(measured, other.measured, kPlus);
  rows += other.rows;
  return *this;
}

TrafficMeter::TrafficMeter(LoadedModel& model)
    : weights_(model.prefetcher()), link_(model.plan().offload.link), begin_(count()) {}

TrafficMeter::Count TrafficMeter::count() {
  if (!weights_) return {};
  weights_->settle();
  const WeightTraffic& all = weights_->traffic();
  return {joined({all.from_host, all.from_disk, all.file}, weights_->ahead(), kMinus), all.rows};
}

Traffic TrafficMeter::end(int64_t steps) {
  if (!weights_) return {};
  const Count now = count();
  const StepTraffic step = weights_->step_traffic();
  const auto n = uint64_t(steps);
  return {steps,
          {n * step.from_host, n * step.from_disk, n * step.file},
          joined(now.moved, begin_.moved, kMinus),
          now.rows - begin_.rows};
}

void TrafficMeter::report(int64_t steps) {
  const Traffic t = end(steps);
  if (t.steps == 0) return;
  const auto per_step = [&](uint64_t bytes) { return bytes_text(bytes / uint64_t(t.steps)); };
  std::string parts;
  const auto add = [&](uint64_t measured, uint64_t predicted, const char* what) {
    if (measured == 0 && predicted == 0) return;
    parts +=
        fmt::format("{}{} {} ({})", parts.empty() ? "" : ", ", per_step(measured), what,
                    measured == predicted ? "as predicted" : "predicted " + per_step(predicted));
  };
  add(t.measured.from_host, t.predicted.from_host, "host to device");
  add(t.measured.from_disk, t.predicted.from_disk, "disk to device");
  add(t.measured.file, t.predicted.file, "read from the files");
  if (t.rows > 0)
    parts +=
        fmt::format(", {:.1f} embedding rows from the files", double(t.rows) / double(t.steps));
  log::info("moved per step: {}{}", parts,
            link_ > 0 ? fmt::format("; link held to {:.1f} GB/s", link_ / 1e9) : "");
}

}  // namespace hydrant
