// Where tokens lie in the slots of one cache head: [sinks | heavy | ring | landing], by arithmetic
// alone.
#pragma once
#include <cstdint>

#include "policies/hd.hpp"

namespace hydrant::policy {

// `capacity()` slots are stored after each step; row capacity() is the landing row, where the
// newest token waits while the step attends capacity() + 1 rows. While filling, tokens lie at 0, 1,
// 2, ... in order of position. Afterwards token p replaces token p - recent, the leaving one, in
// the ring; with recent = 0 there is no ring and the landing row itself is the leaving one.
struct SlotLayout {
  int32_t sinks = 0, heavy = 0, recent = 0;

  HD constexpr int32_t capacity() const { return sinks + heavy + recent; }
  HD constexpr int32_t ring_begin() const { return sinks + heavy; }
  // The slot that the token at `position` has once its step is over.
  HD constexpr int32_t slot_of(int32_t position) const {
    if (position < capacity()) return position;
    return recent > 0 ? ring_begin() + (position - ring_begin()) % recent : capacity();
  }
  // The row where that token waits during its step.
  HD constexpr int32_t landing_of(int32_t position) const {
    return position < capacity() ? position : capacity();
  }
  // Rows that the token's step reads: [0, live).
  HD constexpr int32_t live_rows(int32_t position) const { return landing_of(position) + 1; }
  HD constexpr bool evicts_at(int32_t position) const { return position >= capacity(); }
  // The row that holds the token which leaves the recent window in an evicting step.
  HD constexpr int32_t leaving_of(int32_t position) const { return slot_of(position); }

  friend constexpr bool operator==(const SlotLayout&, const SlotLayout&) = default;
};

}  // namespace hydrant::policy
