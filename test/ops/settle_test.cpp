#include "runtime/backends/cpu/kernels/settle.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "test/support/cache_home.hpp"

namespace hydrant::test {
namespace {

using policy::Id;
using policy::Positions;
using policy::RowPlan;

constexpr cpu::KvLayout kLayout{DType::f32, 8};

// Logits of a step for some rows, with lse so that each query head's probabilities add up to 1 over
// the live rows; what lies behind them is NaN.
struct Logits {
  int32_t heads, slots;
  std::vector<float> logits, lse;

  Logits(std::span<const Segment> segments, const CacheView& cache, int32_t heads_of_step,
         std::mt19937& random)
      : heads(heads_of_step),
        slots(cache.slots),
        logits(segments.size() * size_t(heads) * size_t(slots), std::nanf("")),
        lse(segments.size() * size_t(heads)) {
    std::normal_distribution<float> normal(0, 4);
    for (const Segment& s : segments)
      for (int32_t h = 0; h < heads; h++) {
        double sum = 0;
        for (int32_t row = 0; row < cache.plans[s.place].slots.live_rows(s.first); row++)
          sum += std::exp(double(at(s, h, row) = normal(random)));
        lse[size_t(s.token) * size_t(heads) + size_t(h)] = float(std::log(sum));
      }
  }
  float& at(const Segment& s, int32_t head, int32_t row) {
    return logits[(size_t(s.token) * size_t(heads) + size_t(head)) * size_t(slots) + size_t(row)];
  }
  SettleArgs args(std::span<const Segment> segments, const CacheView& cache) const {
    const auto t = int64_t(segments.size());
    return {{logits.data(), DType::f32, {t, heads, slots}},
            {lse.data(), DType::f32, {t, heads}},
            {heads, cache.kv_heads, cache.head_dim},
            segments,
            cache};
  }
};

void settle(const DeviceChoice& choice, CacheHome& home, std::span<const Segment> segments,
            const Logits& l) {
  Bench bench(choice);
  home.on_device(bench, [&](const CacheView& view) {
    SettleArgs args = l.args(segments, view);
    args.logits = bench.put(l.logits, args.logits.shape);
    args.lse = bench.put(l.lse, args.lse.shape);
    bench.ops().settle(*bench.stream, args);
  });
}

// Rows of every kind at once: filling, evicting, long, not scored.
struct Step {
  CacheHome home{kLayout, 5, 2, 700};
  std::vector<Segment> segments{{0, 9, 1, 0}, {4, 20, 1, 1}, {3, 650, 1, 2}, {1, 0, 1, 3}};

  explicit Step(Id id) {
    home.plans[3] = {{2, 300, 321}, id, Positions::original, true};
    home.plans[0] = {{0, 8, 8}, id, Positions::original, true};  // filling
    home.plans[4] = {{1, 2, 3}, Id::sinks, Positions::original, false};
    home.plans[1] = {{0, 17, 0}, id, Positions::cache, true};
    std::mt19937 random(7);
    std::uniform_real_distribution<float> score(0, 5);
    const CacheView view = home.view();
    for (const Segment& s : segments)
      for (int32_t head = 0; head < view.kv_heads; head++)
        for (int32_t row = 0; row < home.plans[size_t(s.place)].slots.live_rows(s.first); row++) {
          view.scores_of(s.place, head)[row] = score(random);
          view.positions_of(s.place, head)[row] = row;
        }
  }
};

TEST_CASE("settle adds what each slot received, in every path and for 1 to 8 query heads",
          "[devices]") {
  for (const DeviceChoice& choice : device_choices(2))
    for (const Id id : {Id::h2o, Id::tova})
      for (int32_t group = 1; group <= 8; group++) {
        CAPTURE(choice.backend, choice.options.isa, int(id), group);
        Step step(id);
        const CacheView view = step.home.view();
        std::mt19937 random{uint32_t(group)};
        Logits logits(step.segments, view, 2 * group, random);
        Step before(id);
        settle(choice, step.home, step.segments, logits);

        for (const Segment& s : step.segments) {
          const RowPlan& plan = view.plans[s.place];
          if (!plan.scored) continue;
          for (int32_t head = 0; head < view.kv_heads; head++)
            for (int32_t row = 0; row < plan.slots.live_rows(s.first); row++) {
              double expected = 0;
              if (id == Id::h2o && row != plan.slots.landing_of(s.first))
                expected = before.home.view().scores_of(s.place, head)[row];
              for (int32_t g = 0; g < group; g++)
                expected += std::exp(double(logits.at(s, head * group + g, row)) -
                                     double(logits.lse[size_t(s.token) * size_t(2 * group) +
                                                       size_t(head * group + g)]));
              // exp is good to 3e-7, its argument (up to 30) to half an ulp, 1e-6; group + 1
              // roundings of sums up to 13.
              const double bound = 1.5e-6 * group + 1e-6 * expected;
              const float found = view.scores_of(s.place, head)[row];
              if (!(std::abs(found - expected) <= bound))
                FAIL("row " << row << ": " << found << " instead of " << expected);
            }
        }
      }
}

TEST_CASE("settle gives the same bits in every path, order and number of threads") {
  std::vector<float> first_scores;
  std::vector<int32_t> first_victims;
  for (const cpu::Isa isa : cpu::usable_isas())
    for (const int threads : {1, 2, 5}) {
      Step step(Id::h2o);
      const CacheView view = step.home.view();
      std::mt19937 random(3);
      const Logits logits(step.segments, view, 6, random);
      if (threads == 2) std::swap(step.segments[0], step.segments[3]);
      cpu::ThreadPool pool(threads);
      cpu::settle(pool, isa, logits.args(step.segments, view));
      const size_t heads = size_t(view.places) * size_t(view.kv_heads);
      const std::vector<float> scores(view.score, view.score + heads * size_t(view.slots));
      const std::vector<int32_t> victims(view.victim, view.victim + heads);
      if (first_scores.empty()) first_scores = scores, first_victims = victims;
      CHECK(scores == first_scores);
      CHECK(victims == first_victims);
    }
}

TEST_CASE("victims: nobody while filling, the leaving one without scores, else the least",
          "[devices]") {
  for (const DeviceChoice& choice : device_choices(2)) {
    Step step(Id::h2o);
    const CacheView view = step.home.view();
    std::mt19937 random(11);
    const Logits logits(step.segments, view, 2, random);
    settle(choice, step.home, step.segments, logits);
    for (int32_t head = 0; head < view.kv_heads; head++) {
      CHECK(view.victim[view.head_index(0, head)] == -1);
      CHECK(view.victim[view.head_index(1, head)] == -1);
      CHECK(view.victim[view.head_index(4, head)] == view.plans[4].slots.slot_of(20));
      CHECK(view.victim[view.head_index(2, head)] == -7);  // no segment: not touched
      const float* score = view.scores_of(3, head);
      const int32_t leaving = view.plans[3].slots.leaving_of(650);
      int32_t least = leaving;
      for (int32_t row = 2; row < 302; row++)
        if (score[row] < score[least]) least = row;
      CHECK(view.victim[view.head_index(3, head)] == least);
    }
  }
}

}  // namespace
}  // namespace hydrant::test
