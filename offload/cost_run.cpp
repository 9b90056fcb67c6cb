// The steps of a run, one after another.
#include <algorithm>

#include "offload/cost_model.hpp"

namespace hydrant {
namespace {

// Rows that were admitted together, in neighbouring places.
struct Cohort {
  int64_t first = 0, count = 0;
  int32_t age = 0;  // tokens that each of them has
};

// Takes up to `rows` of the free places, the lowest first. Cohorts are in order of places.
std::vector<Cohort> admit(const std::vector<Cohort>& live, int64_t places, int64_t rows) {
  std::vector<Cohort> added;
  int64_t at = 0;
  const auto take = [&](int64_t end) {
    const int64_t count = std::min(rows, end - at);
    if (count > 0) added.push_back({at, count, 0});
    rows -= std::max<int64_t>(count, 0);
  };
  for (const Cohort& c : live) {
    take(c.first);
    at = c.first + c.count;
  }
  take(places);
  return added;
}

}  // namespace

Prediction CostModel::run(const Workload& work) const {
  constexpr int32_t kSamples = 8;  // of steps that differ in their position alone
  const int64_t places = int64_t{setup_.rows_per_group} * setup_.groups,
                prompts = std::max<int64_t>(1, setup_.prefill_tokens / work.prompt);
  Prediction sum;
  sum.generated = double(work.rows) * work.output;
  std::vector<Cohort> live;
  int64_t pending = work.rows;
  const auto load_of = [&](int32_t later) {
    Load load;
    for (const Cohort& c : live)
      if (c.age > 0) load.decode.push_back({c.first, c.count, work.prompt + c.age - 1 + later});
    return load;
  };
  const auto add = [&](const StepCost& cost, double times) {
    sum.steps += times;
    sum.prefill += cost.lanes.times(times * cost.prompt_share);
    sum.decode += cost.lanes.times(times * (1 - cost.prompt_share));
  };
  while (pending > 0 || !live.empty()) {
    const std::vector<Cohort> added = admit(live, places, std::min(pending, prompts));
    int32_t steps = 1;
    if (added.empty()) {
      // Nothing but positions changes until the next row ends.
      steps = work.output;
      for (const Cohort& c : live) steps = std::min(steps, work.output - c.age);
      const int32_t samples = std::min(steps, kSamples);
      for (int32_t i = 0; i < samples; i++) {
        const int32_t begin = int32_t(int64_t{steps} * i / samples),
                      end = int32_t(int64_t{steps} * (i + 1) / samples);
        add(step(load_of((begin + end - 1) / 2), work), end - begin);
      }
    } else {
      Load load = load_of(0);
      for (const Cohort& c : added) {
        // Prompts in several stretches cost as those in one; what moves depends on the first.
        if (load.prompts.count == 0) load.prompts.first = c.first;
        load.prompts.count += c.count;
        pending -= c.count;
      }
      load.prompts.position = work.prompt;
      add(step(load, work), 1);
      live.insert(live.end(), added.begin(), added.end());
      std::sort(live.begin(), live.end(),
                [](const Cohort& a, const Cohort& b) { return a.first < b.first; });
    }
    for (Cohort& c : live) c.age += steps;
    std::erase_if(live, [&](const Cohort& c) { return c.age >= work.output; });
  }
  return sum;
}

}  // namespace hydrant
