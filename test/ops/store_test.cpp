#include "runtime/backends/cpu/kernels/store.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "runtime/base/error.hpp"
#include "test/support/cache_home.hpp"

namespace hydrant::test {
namespace {

using policy::Id;
using policy::Positions;

constexpr cpu::KvLayout kLayout{DType::f32, 8};
constexpr int32_t kHeads = 2;

std::vector<float> marks(int32_t number) {
  return std::vector<float>(size_t(kLayout.head_dim), float(number));
}
float key_mark(const std::byte* head, int64_t slot) {
  float x[8];
  read_key(kLayout, head, slot, x);
  return x[0];
}
float value_mark(const std::byte* head, int64_t slot) {
  float x[8];
  read_value(kLayout, head, slot, x);
  return x[7];
}

// Keys first + slot, values 500 + first + slot.
void fill(std::byte* head, int32_t slots, int32_t first) {
  for (int32_t slot = 0; slot < slots; slot++) {
    write_key(kLayout, head, slot, marks(first + slot).data());
    write_value(kLayout, head, slot, marks(500 + first + slot).data());
  }
}

StorePromptArgs prompt_of(int32_t length, const KvRuns& kv, const CacheView& to) {
  StorePromptArgs args;
  args.prompt.segment = {0, 0, length, 0};
  args.prompt.length = args.prompt.stats_stride = length;
  args.prompt.kv = kv;
  args.shape = {kHeads, kHeads, kLayout.head_dim};
  args.to = to;
  return args;
}

TEST_CASE("a prompt that was computed in its home stays where it is", "[devices]") {
  for (const DeviceChoice& choice : device_choices(2)) {
    Bench bench(choice);
    CacheHome home(kLayout, 1, kHeads, 20);
    home.plans[0] = {{20, 0, 0}, Id::full, Positions::original, false};
    for (int32_t head = 0; head < kHeads; head++)
      fill(head_of(home.view(), 0, head), 20, head * 100);
    const auto before = home.bytes;
    store_prompt(bench, home, prompt_of(18, {}, {}), nullptr, nullptr);
    CHECK(home.bytes == before);
    for (int32_t head = 0; head < kHeads; head++)
      for (int32_t slot = 0; slot < 18; slot++)
        CHECK(home.view().positions_of(0, head)[slot] == slot);
  }
}

TEST_CASE("unrotated keys come to a home whose values are there already", "[devices]") {
  for (const DeviceChoice& choice : device_choices(2)) {
    Bench bench(choice);
    CacheHome home(kLayout, 1, kHeads, 20);
    home.plans[0] = {{20, 0, 0}, Id::full, Positions::cache, false};
    Runs raw(kLayout, kHeads, 20);
    for (int32_t head = 0; head < kHeads; head++) {
      fill(head_of(home.view(), 0, head), 20, head * 100);
      fill(raw.head(head), 20, 300 + head * 100);
    }
    store_prompt(bench, home, prompt_of(18, {}, {}), nullptr, &raw);
    for (int32_t head = 0; head < kHeads; head++)
      for (int32_t slot = 0; slot < 18; slot++) {
        CHECK(key_mark(head_of(home.view(), 0, head), slot) == float(300 + head * 100 + slot));
        CHECK(value_mark(head_of(home.view(), 0, head), slot) == float(500 + head * 100 + slot));
      }
  }
}

TEST_CASE("of equal scores the later positions stay, and heavy slots ascend", "[devices]") {
  for (const DeviceChoice& choice : device_choices(2)) {
    Bench bench(choice);
    CacheHome home(kLayout, 1, 1, 6);
    home.plans[0] = {{1, 3, 2}, Id::h2o, Positions::original, true};
    Runs kv(kLayout, 1, 10);
    fill(kv.head(0), 10, 0);
    //                              0  1  2  3  4  5  6  7  8  9
    const std::vector<float> sum = {9, 1, 5, 1, 1, 4, 1, 1, 0, 0}, last(10, 3.0f);
    auto args = prompt_of(10, kv.view, home.view());
    args.shape = {1, 1, kLayout.head_dim};
    args.prompt.sum = const_cast<float*>(sum.data());
    args.prompt.last = const_cast<float*>(last.data());
    store_prompt(bench, home, args, &kv, nullptr);
    const CacheView view = home.view();
    // sink 0; heavy 2 and 5 by score, 7 of the equal ones; the ring holds 8 and 9 at their places
    const std::vector<int32_t> expected = {0, 2, 5, 7, 8, 9};
    CHECK(std::vector<int32_t>(view.position, view.position + 6) == expected);
    for (int32_t slot = 0; slot < 6; slot++) {
      CHECK(view.score[slot] == sum[size_t(expected[size_t(slot)])]);
      CHECK(key_mark(head_of(view, 0, 0), slot) == float(expected[size_t(slot)]));
    }
    // TOVA goes by the last query, where all are equal: 5, 6, 7 are the latest.
    home.plans[0].policy = Id::tova;
    store_prompt(bench, home, args, &kv, nullptr);
    CHECK(std::vector<int32_t>(view.position, view.position + 6) ==
          std::vector<int32_t>{0, 5, 6, 7, 8, 9});
    CHECK(view.score[0] == 3);
  }
}

TEST_CASE("NaN scores do not lead a prompt's selection astray", "[devices]") {
  for (const DeviceChoice& choice : device_choices(2)) {
    Bench bench(choice);
    CacheHome home(kLayout, 1, 1, 40);
    home.plans[0] = {{0, 20, 20}, Id::h2o, Positions::original, true};
    Runs kv(kLayout, 1, 200);
    fill(kv.head(0), 200, 0);
    std::vector<float> sum(200);
    for (size_t i = 0; i < sum.size(); i++)
      sum[i] = i % 3 ? std::numeric_limits<float>::quiet_NaN() : float(i % 7);
    auto args = prompt_of(200, kv.view, home.view());
    args.shape = {1, 1, kLayout.head_dim};
    args.prompt.sum = args.prompt.last = sum.data();
    store_prompt(bench, home, args, &kv, nullptr);
    for (int32_t slot = 0; slot < 40; slot++) {
      const int32_t p = home.view().position[slot];
      CHECK((slot < 20 ? 0 <= p && p < 180 : 180 <= p && p < 200));
      if (slot > 0 && slot < 20) CHECK(home.view().position[slot - 1] < p);
    }
  }
}

TEST_CASE("a broken promise is named, and nothing is written out of place") {
  CacheHome home(kLayout, 1, kHeads, 5);
  home.plans[0] = {{0, 0, 5}, Id::local, Positions::original, false};
  cpu::ThreadPool pool(1);
  CHECK_THROWS_WITH(cpu::store_prompt(pool, prompt_of(9, home.view().row(0), home.view())),
                    Catch::Contains("9 tokens lies in a home of 5 slots"));
  const std::vector<Segment> segments{{0, 7, 1, 0}};
  home.view().victim[0] = -1;
  CHECK_THROWS_WITH(cpu::store_decode(pool, {segments, home.view(), home.view()}),
                    Catch::Contains("victim -1"));
  home.plans[0] = {{0, 2, 3}, Id::h2o, Positions::original, true};
  Runs kv(kLayout, kHeads, 9);
  CHECK_THROWS_WITH(cpu::store_prompt(pool, prompt_of(9, kv.view, home.view())),
                    Catch::Contains("without column sums"));
}

}  // namespace
}  // namespace hydrant::test
