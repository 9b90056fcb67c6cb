#include "policies/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "policies/registry.hpp"

namespace hydrant::policy {
namespace {

constexpr int64_t kPerPercent = 10'000, kWhole = 100 * kPerPercent;

// A region of the policy as the budget has it.
struct Region {
  std::string_view key;
  bool has = false;
  std::optional<int64_t> given;
  int64_t usual = 0;
  bool open = false;  // gets its size from the rest of the budget, or is the usual one
};

struct Split {
  Region sinks, heavy, recent;

  Split(const Regions& r, const Budget& b)
      : sinks{"sinks", r.sinks, b.sinks, r.usual_sinks, r.usual_sinks > 0 && !b.sinks},
        heavy{"heavy", r.heavy, b.heavy, 0, r.heavy && !b.heavy},
        recent{"recent", r.recent, b.recent, r.usual_recent, r.recent && !b.recent} {}
  std::array<const Region*, 3> all() const { return {&sinks, &heavy, &recent}; }
  int64_t given() const {
    int64_t sum = 0;
    for (const Region* region : all()) sum += region->given.value_or(0);
    return sum;
  }
  bool any_open() const { return sinks.open || heavy.open || recent.open; }
};

// Digits only: from_chars would take a sign.
std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

// "12.5" -> 125000 millionths.
std::optional<int64_t> millionths(std::string_view percent) {
  const size_t point = percent.find('.');
  const auto whole = whole_number(percent.substr(0, point));
  if (!whole || *whole > 100) return std::nullopt;
  if (point == std::string_view::npos) return *whole * kPerPercent;
  std::string decimals(percent.substr(point + 1));
  if (decimals.empty() || decimals.size() > 4) return std::nullopt;
  decimals.resize(4, '0');
  const auto part = whole_number(decimals);
  if (!part) return std::nullopt;
  return *whole * kPerPercent + *part;
}

int64_t total_slots(const Split& split, const Budget& budget, int64_t prompt, int64_t length) {
  if (!budget.total) {
    const auto usual = [](const Region& region) { return region.open ? region.usual : 0; };
    return split.given() + usual(split.sinks) + usual(split.recent);
  }
  const Amount& amount = *budget.total;
  if (amount.of == Amount::Of::slots) return amount.count;
  const int64_t whole = amount.of == Amount::Of::prompt ? prompt : length;
  return std::max(whole * amount.count / kWhole, split.given() + 1);
}

SlotLayout spread(const Split& split, int64_t total) {
  int64_t sinks = split.sinks.given.value_or(0), heavy = split.heavy.given.value_or(0),
          recent = split.recent.given.value_or(0), left = total - split.given();
  if (split.sinks.open) {  // the usual ones, but never all of what other open regions need
    const bool alone = !split.heavy.open && !split.recent.open;
    sinks = alone ? left : std::clamp<int64_t>(left - 1, 0, split.sinks.usual);
    left -= sinks;
  }
  if (split.recent.open) {
    const int64_t usual = split.recent.usual, larger_half = left - left / 2;
    recent = !split.heavy.open ? left : usual > 0 ? std::min(usual, left) : larger_half;
    left -= recent;
  }
  if (split.heavy.open) heavy = left;
  return {int32_t(sinks), int32_t(heavy), int32_t(recent)};
}

// "heavy, recent": of the regions the policy has.
std::string region_keys(const Split& split) {
  std::string keys;
  for (const Region* region : split.all())
    if (region->has) keys.append(keys.empty() ? "" : ", ").append(region->key);
  return keys;
}

// "heavy and recent": of the open regions that have no usual size.
std::string missing_keys(const Split& split) {
  std::string keys;
  for (const Region* region : split.all())
    if (region->open && region->usual == 0)
      keys.append(keys.empty() ? "" : " and ").append(region->key);
  return keys;
}

std::string region_problem(const Split& split, std::string_view policy) {
  const std::string keys = region_keys(split);
  for (const Region* region : split.all()) {
    if (!region->given) continue;
    if (!region->has)
      return fmt::format("{}: the policy '{}' has no such region{}{}", region->key, policy,
                         keys.empty() ? "" : "; it has ", keys);
    if (*region->given < 0 || *region->given > kMaxSlots)
      return fmt::format("{}: must be 0 to {}, is {}", region->key, kMaxSlots, *region->given);
  }
  return "";
}

}  // namespace

std::optional<Amount> parse_amount(std::string_view given) {
  Amount amount;
  std::optional<int64_t> count;
  if (given.ends_with("%p") || given.ends_with('%')) {
    amount.of = given.ends_with('p') ? Amount::Of::prompt : Amount::Of::length;
    count = millionths(given.substr(0, given.rfind('%')));
    if (count && *count > kWhole) return std::nullopt;
  } else {
    count = whole_number(given);
    if (count && *count > kMaxSlots) return std::nullopt;
  }
  if (!count || *count == 0) return std::nullopt;
  amount.count = *count;
  return amount;
}

std::string to_string(const Amount& amount) {
  if (amount.of == Amount::Of::slots) return fmt::format("{}", amount.count);
  std::string percent =
      fmt::format("{}.{:04}", amount.count / kPerPercent, amount.count % kPerPercent);
  percent.erase(percent.find_last_not_of('0') + 1);
  if (percent.ends_with('.')) percent.pop_back();
  return percent + (amount.of == Amount::Of::prompt ? "%p" : "%");
}

std::string problem(Id policy, const Budget& budget) {
  const Split split(regions(policy), budget);
  const std::string keys = region_keys(split);
  if (std::string wrong = region_problem(split, name(policy)); !wrong.empty()) return wrong;
  if (keys.empty())
    return budget.total
               ? fmt::format("budget: the policy '{}' keeps everything, it has none", name(policy))
               : "";
  const int64_t given = split.given();
  if (given > kMaxSlots)
    return fmt::format("recent: {} must be 1 to {} slots together, are {}", keys, kMaxSlots, given);
  if (budget.total) {
    if (!split.any_open()) return fmt::format("budget: given beside all of {}", keys);
    if (budget.total->of == Amount::Of::slots && budget.total->count < given)
      return fmt::format(
          "budget: {} slots cannot hold the {} of the regions that are given; it must be {} to {} "
          "slots, or a share",
          budget.total->count, given, std::max<int64_t>(given, 1), kMaxSlots);
    return "";
  }
  if (const std::string missing = missing_keys(split); !missing.empty())
    return fmt::format(
        "budget: missing; the policy '{}' needs it ({} to {} slots, or a share), or {}",
        name(policy), std::max<int64_t>(given, 1), kMaxSlots, missing);
  if (total_slots(split, budget, 0, 0) == 0)
    return fmt::format("recent: {} must be 1 to {} slots together, are 0", keys, kMaxSlots);
  return "";
}

RowPlan plan(Id policy, Positions positions, const Budget& budget, int64_t prompt,
             int64_t max_new_tokens) {
  const int64_t length = prompt + max_new_tokens;
  const Split split(regions(policy), budget);
  const int64_t slots =
      region_keys(split).empty() ? length : total_slots(split, budget, prompt, length);
  RowPlan row{{}, policy, positions, false};
  if (slots >= length) {
    row.slots.sinks = int32_t(length);
    return row;
  }
  row.slots = spread(split, slots);
  row.scored = wants_mass(policy) && row.slots.heavy > 0;
  return row;
}

std::vector<RowPlan> plan(const Choice& choice, int32_t layers, int64_t prompt,
                          int64_t max_new_tokens) {
  std::vector<RowPlan> rows;
  for (size_t layer = 0; layer < size_t(layers); layer++) {
    const Budget& budget = choice.layers[choice.layers.size() == 1 ? 0 : layer];
    rows.push_back(plan(choice.policy, choice.positions, budget, prompt, max_new_tokens));
  }
  return rows;
}

}  // namespace hydrant::policy
