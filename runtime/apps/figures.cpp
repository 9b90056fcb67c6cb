#include "runtime/apps/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "runtime/apps/cache_choice.hpp"

namespace hydrant {
namespace {

double rate(int64_t count, double seconds) { return seconds > 0 ? double(count) / seconds : 0; }

const Request& longest(std::span<const Request> requests) {
  const auto length = [](const Request& r) { return r.prompt.size() + size_t(r.max_new_tokens); };
  return *std::max_element(requests.begin(), requests.end(),
                           [&](const auto& a, const auto& b) { return length(a) < length(b); });
}

}  // namespace

size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %llu kB", &kib) == 1) return size_t(kib) << 10;
  }
  return 0;
}

bool reset_peak_memory() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return bool(clear);
}

std::string bytes_text(size_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    unit++;
  }
  // Up, so that what a run is said to need is enough when it is given back as a cap.
  return unit == 0 ? fmt::format("{} bytes", bytes)
                   : fmt::format("{:.1f} {}", std::ceil(value * 10) / 10, kUnits[unit]);
}

std::string count_text(int64_t count) {
  std::string digits = fmt::format("{}", count);
  for (ptrdiff_t at = ptrdiff_t(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3)
    digits.insert(size_t(at), 1, ',');
  return digits;
}

std::string rate_text(double per_second) {
  return per_second >= 100 ? count_text(int64_t(per_second + 0.5))
                           : fmt::format("{:.1f}", per_second);
}

size_t full_kv_bytes(const Generator& generator, std::span<const Request> requests,
                     const BatchShape& shape) {
  const Request full = with_full_cache(longest(requests));
  const size_t rows =
      std::min(requests.size(), size_t(shape.rows_per_group) * size_t(shape.groups));
  return generator.need(std::vector<Request>(rows, full)).all_kv();
}

std::string machine_line(const Model& model, const LoadedModel& loaded, const Device& device,
                         DType kv_dtype) {
  return fmt::format("{}, {} M parameters; weights {}, {}; activations {}; cache {}; {}",
                     model.spec.family,
                     count_text((loaded.weights().parameters + 500'000) / 1'000'000),
                     loaded.weights().formats, bytes_text(loaded.weights().bytes),
                     loaded.weights().activations, name(kv_dtype), device.describe());
}

std::string cache_line(const RunConfig& config, std::span<const Request> requests) {
  const Request& row = longest(requests);
  const auto prompt = int64_t(row.prompt.size()), length = prompt + row.max_new_tokens;
  int64_t slots = 0;
  for (const policy::RowPlan& plan : row.plans) slots += plan.slots.capacity();
  slots /= int64_t(row.plans.size());  // layers may differ: their mean
  std::string line = fmt::format("cache {}: {} slots", config.cache.policy, count_text(slots));
  if (config.cache.policy != "full") {
    line += fmt::format(", {:.1f} % of {} tokens", 100.0 * double(slots) / double(length),
                        count_text(length));
    if (config.perplexity.empty())  // a window has no prompt, only tokens that are not judged
      line += fmt::format(", {:.1f} % of the prompt's {}", 100.0 * double(slots) / double(prompt),
                          count_text(prompt));
  }
  return line + (requests.size() > 1 ? " (the longest row)" : "");
}

std::string figures_line(const RunFigures& f, int64_t rows, size_t full_kv, const RunPlan& plan) {
  const int64_t decoded = std::max<int64_t>(f.generated_tokens - rows, 0);
  const double decode_rate = rate(decoded, f.decode_seconds);
  return fmt::format(
      "{} prompt + {} generated tokens; prefill {} tok/s, decode {} tok/s; KV {} ({:.1f} % of the "
      "full cache's {}); peak memory {} (predicted: {}, at most {})",
      count_text(f.prompt_tokens), count_text(f.generated_tokens),
      rate_text(rate(f.prompt_tokens, f.prefill_seconds)), rate_text(decode_rate),
      bytes_text(f.kv_bytes), full_kv > 0 ? 100.0 * double(f.kv_bytes) / double(full_kv) : 0.0,
      bytes_text(full_kv), bytes_text(peak_memory()), bytes_text(plan.peak()),
      bytes_text(plan.most()));
}

}  // namespace hydrant
