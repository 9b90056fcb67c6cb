// One head's bookkeeping after one decode step's attention: new scores, and who leaves. Written as
// strided loops, so that a lane of a GPU's block and a CPU's thread run the same source.
#pragma once
#include <limits>

#include "policies/policy.hpp"

namespace hydrant::policy {

// A slot that may leave. row -1: nobody.
struct Victim {
  float keep = std::numeric_limits<float>::infinity();
  int32_t position = 0, row = -1;
};

// The one of the two that leaves first: the lower keep; among equals the lower original position.
// Associative, so any split of the candidates agrees. Between a NaN and anything else the position
// decides: a broken row still names a slot that exists.
HD constexpr Victim weaker(Victim a, Victim b) {
  if (a.row < 0) return b;
  if (b.row < 0) return a;
  if (a.keep < b.keep) return a;
  if (b.keep < a.keep) return b;
  return a.position < b.position ? a : b;
}

// Rows begin, begin + step, ... below end.
struct Rows {
  int32_t begin = 0, end = 0, step = 1;
};

// New scores. The landing row is born with score 0 before it gets its own mass. mass(row):
// probability the row received in this step, summed over the query heads of its KV head.
template <EvictionPolicy P, class Mass>
HD constexpr void observe(const SlotLayout& slots, int32_t position, Rows rows, const Mass& mass,
                          float* score) {
  const int32_t landing = slots.landing_of(position);
  for (int32_t row = rows.begin; row < rows.end; row += rows.step)
    score[row] = P::observe(row == landing ? 0.0f : score[row], mass(row));
}

// Who leaves of the candidates whose row is `lane` modulo `lanes`: the heavy rows and the leaving
// one. Meant for a step that evicts; positions [row] are original ones.
template <EvictionPolicy P>
HD constexpr Victim weakest(const SlotLayout& slots, int32_t position, int32_t lane, int32_t lanes,
                            const float* score, const int32_t* positions) {
  const int32_t leaving = slots.leaving_of(position);
  Victim victim;
  if (leaving % lanes == lane)
    victim = {P::keep(score[leaving], true), positions[leaving], leaving};
  const int32_t first = slots.sinks + (lane + lanes - slots.sinks % lanes) % lanes;
  for (int32_t row = first; row < slots.ring_begin(); row += lanes) {
    const float keep = P::keep(score[row], false);
    if (keep > victim.keep) continue;  // most rows: a branch beats three selects
    victim = weaker(victim, {keep, positions[row], row});
  }
  return victim;
}

// A step of one head: all of it with lanes = 1, else a lane's share, to be joined by weaker(). A
// lane looks for victims only among rows it has scored itself, so lanes need not wait in between.
template <EvictionPolicy P, class Mass>
HD constexpr Victim settle_lane(const RowPlan& plan, int32_t position, int32_t lane, int32_t lanes,
                                const Mass& mass, float* score, const int32_t* positions) {
  const SlotLayout& slots = plan.slots;
  if (plan.scored)
    observe<P>(slots, position, {lane, slots.live_rows(position), lanes}, mass, score);
  if (!slots.evicts_at(position)) return {};
  const int32_t leaving = slots.leaving_of(position);
  if (!plan.scored) return {0, positions[leaving], leaving};
  return weakest<P>(slots, position, lane, lanes, score, positions);
}

}  // namespace hydrant::policy
