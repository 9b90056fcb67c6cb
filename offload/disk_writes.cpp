#include "offload/disk_writes.hpp"

#include <algorithm>
#include <memory>

#include "offload/disk_tail.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

constexpr size_t kUnit = CacheLayout::kUnit;

}  // namespace

size_t tail_units(const CacheLayout& layout, int32_t layer) {
  const size_t run = layout.run_bytes();
  const size_t touched = run % kUnit == 0 ? run / kUnit : ceil_div(run, kUnit) + 1;
  return std::min(2 * touched * size_t(layout.shape().kv_heads), layout.block_bytes(layer) / kUnit);
}

std::vector<size_t> changed_units(const CacheLayout& layout, int32_t layer,
                                  const policy::SlotLayout& slots, int32_t position,
                                  std::span<const int32_t> victims) {
  const int32_t landing = slots.landing_of(position);
  std::vector<size_t> units;
  const auto changed = [&](size_t head, int32_t slot) {
    const size_t at =
        head * layout.head_bytes(layer) + size_t(slot / kRunSlots) * layout.run_bytes();
    for (size_t unit = at / kUnit; unit * kUnit < at + layout.run_bytes(); unit++)
      units.push_back(unit);
  };
  for (size_t head = 0; head < size_t(layout.shape().kv_heads); head++) {
    if (!slots.evicts_at(position)) {
      changed(head, landing);
      continue;
    }
    const int32_t leaving = slots.leaving_of(position), victim = victims[head];
    ensure(0 <= victim && victim <= landing, "the victim of position {} is {} of {}", position,
           victim, landing);
    if (landing != leaving) changed(head, leaving);
    if (victim != leaving) changed(head, victim);
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

std::optional<uint64_t> decode_written(const CacheLayout& layout, int32_t layer,
                                       const policy::SlotLayout& slots, int32_t position,
                                       int32_t count) {
  if (slots.heavy > 0 && count > 0 && slots.evicts_at(position + count - 1)) return std::nullopt;
  const size_t room = tail_units(layout, layer);
  const auto untouched = std::make_unique_for_overwrite<std::byte[]>(room * kUnit);
  DiskTail tail(untouched.get(), room, kUnit);
  std::vector<DiskTail::Leaving> leaving;
  std::vector<int32_t> victims(size_t(layout.shape().kv_heads));
  for (int32_t p = position; p < position + count; p++) {
    std::fill(victims.begin(), victims.end(), slots.leaving_of(p));  // of the others the oldest
    tail.make_room(changed_units(layout, layer, slots, p, victims), leaving);
  }
  return leaving.size() * kUnit;
}

}  // namespace hydrant
