// Slot arithmetic and settling against the naive list, in a few thousand random caches.
#include "policies/settle.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "policies/registry.hpp"
#include "test/support/naive_cache.hpp"

namespace hydrant::test {
namespace {

using policy::RowPlan;
using policy::SlotLayout;
using policy::Victim;

// Positions and scores of one head in their slots, landing row included.
struct Slots {
  RowPlan plan;
  std::vector<int32_t> position;
  std::vector<float> score;

  explicit Slots(const RowPlan& of)
      : plan(of),
        position(size_t(of.slots.capacity()) + 1, -1),
        score(size_t(of.slots.capacity()) + 1, -1000) {}  // read unborn, this would show

  // New scores, with the rows split over some lanes, and who is to leave.
  template <class Mass>
  Victim settle(int32_t now, int32_t lanes, const Mass& mass) {
    position[size_t(plan.slots.landing_of(now))] = now;
    const auto of_row = [&](int32_t row) { return mass(position[size_t(row)]); };
    Victim victim;
    policy::visit(plan.policy, [&]<class Policy>(Policy) {
      for (int32_t lane = 0; lane < lanes; lane++)
        victim = policy::weaker(victim, policy::settle_lane<Policy>(plan, now, lane, lanes, of_row,
                                                                    score.data(), position.data()));
    });
    return victim;
  }

  // The two moves.
  void store(int32_t now, Victim victim) {
    if (victim.row < 0) return;
    move(plan.slots.leaving_of(now), victim.row);
    if (plan.slots.recent > 0) move(plan.slots.landing_of(now), plan.slots.leaving_of(now));
  }

 private:
  void move(int32_t from, int32_t to) {
    position[size_t(to)] = position[size_t(from)];
    score[size_t(to)] = score[size_t(from)];
  }
};

// The rule read off the live slots alone: the victim is the lowest of the candidates by (keep,
// position).
bool is_least(const Slots& slots, Victim victim, int32_t now) {
  const SlotLayout& layout = slots.plan.slots;
  std::vector<std::pair<float, int32_t>> candidates;
  bool found = false;
  for (size_t row = 0; row < slots.position.size(); row++) {
    const int32_t p = slots.position[row];
    if (p < layout.sinks || p > now - layout.recent) continue;
    const bool spared = slots.plan.policy == policy::Id::h2o_promote && p == now - layout.recent &&
                        layout.heavy > 0;
    if (!spared) candidates.push_back({slots.score[row], p});
    if (int32_t(row) == victim.row) found = !spared && p == victim.position;
  }
  const auto least = *std::min_element(candidates.begin(), candidates.end());
  return found && least.second == victim.position;
}

TEST_CASE("slots and settling agree with the list of tokens") {
  std::mt19937 random(1);
  const auto below = [&](int32_t n) { return int32_t(random() % uint32_t(n)); };
  int64_t steps = 0, evictions = 0;
  for (int round = 0; round < 4000; round++) {
    RowPlan plan;
    plan.policy =
        std::vector{policy::Id::h2o, policy::Id::h2o_promote, policy::Id::tova}[size_t(below(3))];
    plan.scored = true;
    plan.slots = {below(4), below(9), below(10)};
    if (plan.slots.capacity() == 0) continue;
    const int32_t lanes = 1 + below(5), length = 1 + below(80), query_heads = 1 + below(8);
    CAPTURE(round, int(plan.policy), plan.slots.sinks, plan.slots.heavy, plan.slots.recent, lanes);

    Slots slots(plan);
    NaiveCache naive(plan.policy, plan.slots);
    std::vector<float> mass(size_t(length), 0.0f);
    for (int32_t now = 0; now < length; now++, steps++) {
      // Powers of two: sums are exact and ties are frequent.
      for (float& m : mass) {
        m = 0;
        for (int32_t g = 0; g < query_heads; g++) m += std::ldexp(1.0f, -below(5));
      }
      const auto mass_of = [&](int32_t p) { return mass[size_t(p)]; };
      const Victim victim = slots.settle(now, lanes, mass_of);
      if (victim.row >= 0) REQUIRE(is_least(slots, victim, now));
      slots.store(now, victim);
      const auto expected = naive.step(mass_of);
      REQUIRE((victim.row >= 0) == expected.has_value());
      if (expected) REQUIRE(victim.position == *expected);
      evictions += expected.has_value();
      const int32_t stored = std::min(now + 1, plan.slots.capacity());
      REQUIRE(as_tokens(slots.position.data(), slots.score.data(), stored) == naive.tokens());
      // Sinks and recent tokens lie where arithmetic says.
      for (int32_t p = 0; p <= now; p++)
        if (p < plan.slots.sinks || p > now - plan.slots.recent)
          REQUIRE((plan.slots.slot_of(p) >= stored ||
                   slots.position[size_t(plan.slots.slot_of(p))] == p));
    }
  }
  CHECK(steps > 100000);
  CHECK(evictions > 60000);
}

TEST_CASE("a row that is not scored loses its oldest token that is no sink") {
  for (const policy::Id id : {policy::Id::local, policy::Id::sinks}) {
    RowPlan plan;
    plan.policy = id;
    plan.slots = {id == policy::Id::sinks ? 2 : 0, 0, 3};
    Slots slots(plan);
    NaiveCache naive(id, plan.slots);
    for (int32_t now = 0; now < 40; now++) {
      const auto no_mass = [](int32_t) { return 0.0f; };
      const Victim victim = slots.settle(now, 1 + now % 3, no_mass);
      slots.store(now, victim);
      const auto expected = naive.step(no_mass);
      REQUIRE((victim.row >= 0) == expected.has_value());
      if (expected) REQUIRE(victim.position == *expected);
    }
  }
}

TEST_CASE("the weaker of two: lower keep, then lower position, whatever the order") {
  const Victim nobody, a{1, 7, 0}, b{1, 3, 1}, c{2, 1, 2}, never{policy::kNever, 0, 3};
  const std::vector<Victim> all{nobody, a, b, c, never};
  CHECK(policy::weaker(a, b).row == b.row);
  CHECK(policy::weaker(a, c).row == a.row);
  CHECK(policy::weaker(never, c).row == c.row);
  CHECK(policy::weaker(nobody, never).row == never.row);
  for (const Victim x : all)
    for (const Victim y : all) {
      CHECK(policy::weaker(x, y).row == policy::weaker(y, x).row);
      for (const Victim z : all)
        CHECK(policy::weaker(policy::weaker(x, y), z).row ==
              policy::weaker(x, policy::weaker(y, z)).row);
    }
}

TEST_CASE("an evicting step names a slot that exists even when scores are NaN") {
  RowPlan plan{{1, 3, 2}, policy::Id::h2o, policy::Positions::original, true};
  Slots slots(plan);
  for (int32_t now = 0; now < 20; now++) {
    const Victim victim =
        slots.settle(now, 2, [](int32_t) { return std::numeric_limits<float>::quiet_NaN(); });
    slots.store(now, victim);
    if (plan.slots.evicts_at(now)) {
      REQUIRE(victim.row >= plan.slots.sinks);
      REQUIRE(victim.row < plan.slots.capacity());
    }
  }
}

}  // namespace
}  // namespace hydrant::test
