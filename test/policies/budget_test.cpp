#include "policies/budget.hpp"

#include <catch2/catch.hpp>

#include "policies/registry.hpp"

namespace hydrant::policy {
namespace {

Amount amount(std::string_view text) { return parse_amount(text).value(); }

SlotLayout slots(Id id, const Budget& budget, int64_t prompt, int64_t max_new_tokens) {
  INFO(problem(id, budget));
  REQUIRE(problem(id, budget).empty());
  return plan(id, Positions::original, budget, prompt, max_new_tokens).slots;
}

TEST_CASE("amounts are read exactly, and written as they were read") {
  for (const char* text : {"1", "512", "1073741824", "20%", "20%p", "0.0001%", "12.5%", "100%p"})
    CHECK(to_string(amount(text)) == text);
  CHECK(to_string(amount("12.50%")) == "12.5%");
  CHECK(amount("12.5%").count == 125'000);
  CHECK(amount("20%p").of == Amount::Of::prompt);
  for (const char* text : {"",          "0",    "-1",  "+1",         "1.5",
                           "1e3",       " 1",   "1 ",  "1073741825", "99999999999999999999",
                           "%",         "%p",   "p",   "0%",         "-5%",
                           "100.0001%", "101%", "5.%", ".5%",        "5.00001%",
                           "5%%",       "5 %",  "5%P", "5%pp",       "5p",
                           "1.-5%",     "nan%", "0x10"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_amount(text));
  }
}

TEST_CASE("a budget becomes regions by the policy's habit") {
  const Budget b20{.total = amount("20")}, b21{.total = amount("21")};
  CHECK(slots(Id::h2o, b20, 100, 10) == SlotLayout{0, 10, 10});
  CHECK(slots(Id::h2o, b21, 100, 10) == SlotLayout{0, 10, 11});  // recent: the larger half
  CHECK(slots(Id::h2o_promote, b21, 100, 10) == SlotLayout{0, 10, 11});
  CHECK(slots(Id::local, b20, 100, 10) == SlotLayout{0, 0, 20});
  CHECK(slots(Id::sinks, b20, 100, 10) == SlotLayout{4, 0, 16});
  CHECK(slots(Id::tova, b20, 100, 10) == SlotLayout{0, 19, 1});
  CHECK(slots(Id::full, {}, 100, 10) == SlotLayout{110, 0, 0});

  const Budget one{.total = amount("1")}, two{.total = amount("2")};
  CHECK(slots(Id::h2o, one, 100, 10) == SlotLayout{0, 0, 1});
  CHECK(slots(Id::tova, one, 100, 10) == SlotLayout{0, 0, 1});
  CHECK(slots(Id::sinks, one, 100, 10) == SlotLayout{0, 0, 1});
  CHECK(slots(Id::sinks, two, 100, 10) == SlotLayout{1, 0, 1});
}

TEST_CASE("regions that are given stay as they are") {
  Budget b{.total = amount("20"), .sinks = 3};
  CHECK(slots(Id::h2o, b, 100, 10) == SlotLayout{3, 8, 9});
  CHECK(slots(Id::sinks, b, 100, 10) == SlotLayout{3, 0, 17});
  b.recent = 5;
  CHECK(slots(Id::h2o, b, 100, 10) == SlotLayout{3, 12, 5});
  CHECK(slots(Id::tova, b, 100, 10) == SlotLayout{3, 12, 5});
  b = {.total = amount("20"), .heavy = 6};
  CHECK(slots(Id::h2o, b, 100, 10) == SlotLayout{0, 6, 14});
  CHECK(slots(Id::h2o, {.heavy = 3, .recent = 0}, 100, 10) == SlotLayout{0, 3, 0});
  CHECK(slots(Id::h2o, {.sinks = 1, .heavy = 0, .recent = 2}, 100, 10) == SlotLayout{1, 0, 2});
  CHECK(slots(Id::sinks, {.recent = 7}, 100, 10) == SlotLayout{4, 0, 7});
  CHECK(slots(Id::sinks, {.sinks = 0, .recent = 7}, 100, 10) == SlotLayout{0, 0, 7});
  CHECK(slots(Id::sinks, {.total = amount("9"), .recent = 7}, 100, 10) == SlotLayout{2, 0, 7});
  CHECK(slots(Id::tova, {.heavy = 7}, 100, 10) == SlotLayout{0, 7, 1});
}

TEST_CASE("a share is of the row, rounded down, and never nothing") {
  const Budget total{.total = amount("20%")}, prompt{.total = amount("20%p")};
  CHECK(slots(Id::h2o, total, 512, 512).capacity() == 204);
  CHECK(slots(Id::h2o, prompt, 512, 512).capacity() == 102);
  CHECK(slots(Id::h2o, prompt, 4, 100).capacity() == 1);
  CHECK(slots(Id::h2o, {.total = amount("0.1%")}, 1000, 1000).capacity() == 2);  // exactly
  CHECK(slots(Id::h2o, {.total = amount("20%p"), .sinks = 4}, 4, 100) == SlotLayout{4, 0, 1});
}

TEST_CASE("a row that fits keeps its positions as slots and is not scored") {
  const Budget b{.heavy = 50, .recent = 50};
  for (const Id id : {Id::h2o, Id::h2o_promote, Id::tova}) {
    const RowPlan fits = plan(id, Positions::cache, b, 90, 10);
    CHECK(fits.slots == SlotLayout{100, 0, 0});
    CHECK_FALSE(fits.scored);
    CHECK(fits.policy == id);
    CHECK(fits.positions == Positions::cache);
    const RowPlan evicts = plan(id, Positions::original, b, 90, 11);
    CHECK(evicts.slots == SlotLayout{0, 50, 50});
    CHECK(evicts.scored);
  }
  CHECK_FALSE(plan(Id::local, Positions::original, {.recent = 5}, 90, 10).scored);
  // Without heavy slots the oldest leaves, whatever was attended to.
  CHECK_FALSE(plan(Id::h2o, Positions::original, {.heavy = 0, .recent = 5}, 90, 10).scored);
  CHECK(plan(Id::full, Positions::original, {}, 1, 1).slots.capacity() == 2);
  CHECK(plan(Id::local, Positions::original, {.recent = kMaxSlots}, 5, 5).slots.capacity() == 10);
}

TEST_CASE("layers may differ") {
  Choice choice{.policy = Id::h2o};
  choice.layers = {{.total = amount("10")}, {.total = amount("50%")}, {.heavy = 1, .recent = 2}};
  const auto plans = plan(choice, 3, 60, 40);
  REQUIRE(plans.size() == 3);
  CHECK(plans[0].slots == SlotLayout{0, 5, 5});
  CHECK(plans[1].slots == SlotLayout{0, 25, 25});
  CHECK(plans[2].slots == SlotLayout{0, 1, 2});
  choice.layers.resize(1);
  CHECK(plan(choice, 2, 60, 40)[1].slots == SlotLayout{0, 5, 5});
}

TEST_CASE("what cannot be is named with its key") {
  struct Case {
    Id policy;
    Budget budget;
    const char* begins;
    const char* contains;
  };
  const Case cases[] = {
      {Id::full, {.total = amount("20%")}, "budget:", "'full' keeps everything"},
      {Id::full, {.recent = 3}, "recent:", "'full' has no such region"},
      {Id::local, {}, "budget:", "'local' needs it (1 to 1073741824 slots, or a share), or recent"},
      {Id::local, {.heavy = 3, .recent = 3}, "heavy:", "'local' has no such region; it has recent"},
      {Id::local, {.recent = 0}, "recent:", "must be 1 to 1073741824 slots together, are 0"},
      {Id::local, {.total = amount("5"), .recent = 5}, "budget:", "given beside all of recent"},
      {Id::sinks, {.heavy = 3, .recent = 3}, "heavy:", "it has sinks, recent"},
      {Id::sinks, {.sinks = 4}, "budget:", "missing"},
      {Id::sinks,
       {.sinks = 0, .recent = 0},
       "recent:",
       "must be 1 to 1073741824 slots together, are 0"},
      {Id::h2o,
       {},
       "budget:",
       "'h2o' needs it (1 to 1073741824 slots, or a share), or heavy and recent"},
      {Id::h2o, {.heavy = 4}, "budget:", "needs it (4 to 1073741824 slots, or a share), or recent"},
      {Id::h2o, {.recent = 4}, "budget:", "needs it (4 to 1073741824 slots, or a share), or heavy"},
      {Id::h2o,
       {.heavy = 0, .recent = 0},
       "recent:",
       "must be 1 to 1073741824 slots together, are 0"},
      {Id::h2o, {.heavy = -1, .recent = 4}, "heavy:", "is -1"},
      {Id::h2o, {.sinks = -7, .heavy = 1, .recent = 4}, "sinks:", "is -7"},
      {Id::h2o, {.heavy = kMaxSlots + 1, .recent = 4}, "heavy:", "1073741824"},
      {Id::h2o,
       {.heavy = kMaxSlots, .recent = 1},
       "recent:",
       "must be 1 to 1073741824 slots together, are 1073741825"},
      {Id::h2o, {.heavy = INT64_MAX, .recent = INT64_MAX}, "heavy:", "must be 0 to"},
      {Id::h2o,
       {.total = amount("7"), .sinks = 8},
       "budget:",
       "7 slots cannot hold the 8 of the regions that are given; it must be 8 to 1073741824 slots"},
      {Id::h2o, {.total = amount("7"), .heavy = 1, .recent = 1}, "budget:", "beside all"},
      {Id::h2o_promote,
       {.heavy = 0, .recent = 0},
       "recent:",
       "must be 1 to 1073741824 slots together, are 0"},
      {Id::tova,
       {.recent = 4},
       "budget:",
       "needs it (4 to 1073741824 slots, or a share), or heavy"},
      {Id::tova,
       {.heavy = 0, .recent = 0},
       "recent:",
       "must be 1 to 1073741824 slots together, are 0"},
  };
  for (const Case& c : cases) {
    const std::string text = problem(c.policy, c.budget);
    CAPTURE(text, c.contains);
    CHECK(text.rfind(c.begins, 0) == 0);
    CHECK(text.find(c.contains) != std::string::npos);
  }
}

TEST_CASE("every policy is found by its name") {
  CHECK(policy_names() == "full, local, sinks, h2o, h2o_promote, tova");
  for_each([](auto policy) {
    CHECK(policy_named(policy.name) == policy.id);
    CHECK(name(policy.id) == policy.name);
  });
  CHECK_FALSE(policy_named("H2O"));
  CHECK_FALSE(policy_named(""));
  CHECK(positions_named("cache") == Positions::cache);
  CHECK(positions_named("original") == Positions::original);
  CHECK_FALSE(positions_named("rank"));
}

}  // namespace
}  // namespace hydrant::policy
