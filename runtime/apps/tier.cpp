// What the tiers of a plan hold, in words.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/apps/figures.hpp"
#include "runtime/apps/run_plan.hpp"

namespace hydrant {

size_t Tier::bytes() const {
  size_t sum = 0;
  for (const MemoryItem& item : items) sum += item.bytes;
  return sum;
}

std::string Tier::text() const {
  std::vector<MemoryItem> largest = items;
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::string text = bytes_text(bytes());
  for (size_t i = 0; i < largest.size(); i++)
    text +=
        fmt::format("{}{} {}", i == 0 ? ": " : ", ", largest[i].what, bytes_text(largest[i].bytes));
  return text;
}

std::string memory_line(const RunPlan& plan) {
  const auto of = [](const Tier& t) {
    return t.text() + (t.cap ? fmt::format(" (may be {})", bytes_text(*t.cap)) : "");
  };
  return fmt::format("memory: device {}; host {}{}; with the process {}, at most {}",
                     of(plan.device), of(plan.host),
                     plan.disk.items.empty() ? "" : "; disk " + of(plan.disk),
                     bytes_text(plan.peak()), bytes_text(plan.most()));
}

}  // namespace hydrant
