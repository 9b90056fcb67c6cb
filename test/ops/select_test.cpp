// Who stays of a long prompt, and who leaves after it, against the naive list: more positions than
// the threads of a block, so that each has several.
#include <catch2/catch.hpp>

#include "policies/budget.hpp"
#include "policies/registry.hpp"
#include "test/support/cache_home.hpp"
#include "test/support/naive_cache.hpp"
#include "test/support/random.hpp"

namespace hydrant::test {
namespace {

using policy::Id;

constexpr cpu::KvLayout kLayout{DType::bf16, 8};

struct Case {
  Id policy;
  policy::SlotLayout slots;
  int32_t length;
};

// Scores of which all are different, a few are, or none.
std::vector<float> column_sums(Random& random, int32_t length, int kind) {
  std::vector<float> sums(static_cast<size_t>(length));
  for (float& s : sums)
    s = kind == 0 ? random.uniform(0, 30) : kind == 1 ? float(random.below(4)) : 1.5f;
  return sums;
}

}  // namespace

TEST_CASE("of a long prompt the policy's choice stays", "[devices]") {
  const Case cases[] = {{Id::h2o, {0, 300, 300}, 1500},      {Id::h2o, {3, 257, 0}, 700},
                        {Id::h2o_promote, {0, 40, 60}, 600}, {Id::tova, {4, 500, 1}, 1030},
                        {Id::sinks, {4, 0, 300}, 800},       {Id::local, {0, 0, 511}, 1100},
                        {Id::full, {600, 0, 0}, 600},        {Id::h2o, {0, 1, 1}, 514}};
  Random random(5);
  for (const DeviceChoice& choice : device_choices(2))
    for (const Case& c : cases)
      for (const int kind : {0, 1, 2}) {
        CAPTURE(choice.backend, policy::name(c.policy), c.slots.sinks, c.slots.heavy,
                c.slots.recent, c.length, kind);
        Bench bench(choice);
        CacheHome home(kLayout, 1, 1, c.slots.capacity());
        const bool scored = c.slots.heavy > 0;
        home.plans[0] = {c.slots, c.policy, policy::Positions::original, scored};
        const Runs kv(kLayout, 1, c.length);
        std::vector<float> sum = column_sums(random, c.length, kind),
                           last = column_sums(random, c.length, kind);
        StorePromptArgs args;
        args.prompt.segment = {0, 0, c.length, 0};
        args.prompt.length = args.prompt.stats_stride = c.length;
        args.shape = {1, 1, kLayout.head_dim};
        if (scored) args.prompt.sum = sum.data(), args.prompt.last = last.data();
        store_prompt(bench, home, args, &kv, nullptr);

        NaiveCache naive(c.policy, c.slots);
        naive.prompt(
            c.length, [&](int32_t p) { return scored ? double(sum[size_t(p)]) : 0.0; },
            [&](int32_t p) { return scored ? double(last[size_t(p)]) : 0.0; });
        const CacheView view = home.view();
        const int32_t stored = std::min(c.length, c.slots.capacity());
        const auto found = as_tokens(view.position, view.score, stored);
        REQUIRE(found.size() == naive.tokens().size());
        for (size_t i = 0; i < found.size(); i++) {
          REQUIRE(found[i].position == naive.tokens()[i].position);
          if (scored) REQUIRE(found[i].score == naive.tokens()[i].score);
        }
      }
}

}  // namespace hydrant::test
