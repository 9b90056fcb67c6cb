#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "test/ops/decode_step.hpp"

using namespace hydrant;
using namespace hydrant::cpu;
using namespace hydrant::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Every output of one row of the step against double precision. `place_of` gives a slot's place
// in the rotation; without one keys are taken as they are.
template <class PlaceOf>
void check_row(const DecodeStep& step, const DecodeResult& r, const Segment& s,
               const PlaceOf& place_of) {
  const HeadShape shape = step.home.shape();
  const int32_t live = step.plans[size_t(s.place)].slots.live_rows(s.first);
  for (int32_t head = 0; head < shape.heads; head++) {
    const int32_t kv_head = head / (shape.heads / shape.kv_heads);
    auto q = step.query(s, head);
    if (step.dims > 0) q = turned(q, step.table, step.dims, live - 1);
    std::vector<std::vector<double>> keys, values;
    for (int32_t slot = 0; slot < live; slot++) {
      keys.push_back(step.home.key(s.place, kv_head, slot));
      if (step.dims > 0)
        keys.back() = turned(keys.back(), step.table, step.dims, place_of(kv_head, slot));
      values.push_back(step.home.value(s.place, kv_head, slot));
    }
    Answer a = attend_one(q, keys, values, double(step.scale), step.home.layout().dtype);
    // A turned component is a sum of two products and rounds three times, so its error is at most
    // 3 * 2^-24 of sqrt(2) * the pair's length; generously 8 * 2^-24 of the largest possible logit.
    if (step.dims > 0) {
      double lengths = 0;
      for (const auto& k : keys)
        lengths =
            std::max(lengths, std::sqrt(std::inner_product(k.begin(), k.end(), k.begin(), 0.0)));
      const double more = 8 * std::ldexp(1.0, -24) * lengths * double(step.scale) *
                          std::sqrt(std::inner_product(q.begin(), q.end(), q.begin(), 0.0));
      a.logit_bound += more;
      a.lse_bound += more;
      for (double& b : a.out_bound) b += 4 * more * 4;  // values are below 4 on average by far
    }
    const auto row = size_t(s.token * shape.heads + head);
    INFO("head " << head << " of place " << s.place << " with " << live << " live slots");
    if (step.plans[size_t(s.place)].scored)
      for (size_t i = 0; i < keys.size(); i++)
        REQUIRE(std::fabs(double(r.logits[row * size_t(step.home.slots()) + i]) - a.logits[i]) <=
                a.logit_bound);
    REQUIRE(std::fabs(double(r.lse[row]) - a.lse) <= a.lse_bound);
    for (size_t i = 0; i < q.size(); i++)
      REQUIRE(std::fabs(double(r.out[row * q.size() + i]) - a.out[i]) <= a.out_bound[i]);
  }
}
void check_row(const DecodeStep& step, const DecodeResult& r, const Segment& s) {
  check_row(step, r, s, [](int32_t, int32_t slot) { return slot; });
}

std::vector<float> row_of(const std::vector<float>& all, int32_t token, size_t size) {
  const auto at = all.begin() + std::ptrdiff_t(size_t(token) * size);
  return {at, at + std::ptrdiff_t(size)};
}

}  // namespace

TEST_CASE("decode attention equals double precision for every shape, type and path", "[devices]") {
  for (const int32_t d : {8, 24, 64, 80, 128})
    for (const int32_t group : {1, 2, 3, 4, 8})
      for (const DType dtype : kKvTypes) {
        const HeadShape shape{group * 2, 2, d};
        const std::vector<int32_t> lengths{1, 2, 15, 16, 17, 33, 255, 257, 530};
        Home home(dtype, shape, 544, int32_t(lengths.size()));
        DecodeStep step{home,
                        {},
                        {},
                        normals(uint32_t(d * group), lengths.size() * size_t(shape.heads * d)),
                        {}};
        step.scale = 1 / std::sqrt(float(d));
        for (int32_t i = 0; i < int32_t(lengths.size()); i++) {
          home.put_random(uint32_t(i), i, lengths[size_t(i)]);
          step.plans.push_back(roomy(544, i % 2 == 0));
          step.segments.push_back(segment_of(i, lengths[size_t(i)], i));
        }
        for (const DeviceChoice& choice : device_choices()) {
          INFO(choice.backend << " " << choice.options.isa << " " << name(dtype) << " d " << d
                              << " group " << group);
          const DecodeResult r = step.run(choice);
          for (const Segment& s : step.segments) check_row(step, r, s);
        }
      }
}

TEST_CASE("groups larger than a register tile are cut", "[devices]") {
  const HeadShape shape{13, 1, 64};
  Home home(DType::bf16, shape, 48);
  home.put_random(1, 0, 40);
  const DecodeStep step{home, {roomy(48)}, {segment_of(0, 40, 0)}, normals(2, 13 * 64), {}};
  for (const DeviceChoice& choice : device_choices())
    check_row(step, step.run(choice), step.segments[0]);
}

TEST_CASE("a row's bits do not depend on batch, order, place, threads or the size of the home") {
  const std::vector<int32_t> lengths{300, 1, 777, 256, 512, 18};
  const HeadShape shape{6, 2, 64};
  const size_t out_size = 6 * 64;
  for (const DType dtype : kKvTypes)
    for (const Isa isa : usable_isas()) {
      std::vector<DecodeResult> alone;
      std::vector<std::vector<float>> queries;
      for (size_t i = 0; i < lengths.size(); i++) {
        Home home(dtype, shape, (lengths[i] + 15) / 16 * 16);
        home.put_random(uint32_t(i), 0, lengths[i]);
        queries.push_back(normals(uint32_t(100 + i), out_size));
        const DecodeStep step{
            home, {roomy(lengths[i])}, {segment_of(0, lengths[i], 0)}, queries[i], {}};
        alone.push_back(step.run(isa, 1));
      }
      const std::vector<std::vector<size_t>> orders{
          {0, 1, 2, 3, 4, 5}, {5, 2, 0}, {4, 3, 1, 0, 5, 2}};
      for (const auto& order : orders)
        for (const int threads : {1, 2, 3}) {
          Home home(dtype, shape, 1024, 6);
          DecodeStep step{home, std::vector<policy::RowPlan>(6, roomy(1024)), {}, {}, {}};
          for (size_t token = 0; token < order.size(); token++) {
            const size_t i = order[token];
            const auto place = int32_t(5 - token);
            home.put_random(uint32_t(i), place, lengths[i]);
            step.segments.push_back(segment_of(place, lengths[i], int32_t(token)));
            step.q.insert(step.q.end(), queries[i].begin(), queries[i].end());
          }
          const DecodeResult r = step.run(isa, threads);
          for (size_t token = 0; token < order.size(); token++) {
            const DecodeResult& one = alone[order[token]];
            INFO(name(isa) << " " << name(dtype) << " row " << order[token] << " threads "
                           << threads);
            REQUIRE(same_bits(row_of(r.out, int32_t(token), out_size), one.out));
            REQUIRE(same_bits(row_of(r.lse, int32_t(token), 6), one.lse));
            for (size_t head = 0; head < 6; head++)
              REQUIRE(
                  std::equal(one.logits.begin() + std::ptrdiff_t(head * (one.logits.size() / 6)),
                             one.logits.begin() + std::ptrdiff_t(head * (one.logits.size() / 6) +
                                                                 size_t(lengths[order[token]])),
                             r.logits.begin() + std::ptrdiff_t((token * 6 + head) * 1024)));
          }
        }
    }
}

TEST_CASE("a row's bits are its own on each device", "[devices]") {
  const std::vector<int32_t> lengths{300, 1, 530, 64, 257};
  const HeadShape shape{4, 2, 64};
  const size_t out_size = 4 * 64;
  for (const DeviceChoice& choice : device_choices()) {
    Home together(DType::f16, shape, 1024, int32_t(lengths.size()));
    DecodeStep step{
        together, std::vector<policy::RowPlan>(lengths.size(), roomy(1024)), {}, {}, {}};
    std::vector<DecodeResult> alone;
    for (int32_t i = 0; i < int32_t(lengths.size()); i++) {
      const int32_t live = lengths[size_t(i)];
      const std::vector<float> q = normals(uint32_t(100 + i), out_size);
      Home home(DType::f16, shape, align_up(live, kRunSlots));
      home.put_random(uint32_t(i), 0, live);
      alone.push_back(DecodeStep{home, {roomy(live)}, {segment_of(0, live, 0)}, q, {}}.run(choice));
      together.put_random(uint32_t(i), i, live);
      step.segments.push_back(segment_of(i, live, i));
      step.q.insert(step.q.end(), q.begin(), q.end());
    }
    const DecodeResult r = step.run(choice);
    for (size_t i = 0; i < lengths.size(); i++) {
      INFO(choice.backend << " " << choice.options.isa << " row " << i);
      CHECK(same_bits(row_of(r.out, int32_t(i), out_size), alone[i].out));
      CHECK(same_bits(row_of(r.lse, int32_t(i), 4), alone[i].lse));
    }
  }
}

TEST_CASE("decode attention has the same bits on every path") {
  for (const int32_t d : {24, 64, 80, 128})
    for (const int32_t group : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16})
      for (const DType dtype : kKvTypes)
        for (const int32_t dims : {0, d / 4 * 2}) {
          const HeadShape shape{group, 1, d};
          Home home(dtype, shape, 288);
          home.put_random(uint32_t(d + group), 0, 277);
          home.positions.resize(288);
          std::iota(home.positions.begin(), home.positions.end(), 0);
          const DecodeStep step{home,
                                {roomy(288)},
                                {segment_of(0, 277, 0)},
                                normals(uint32_t(d * group), size_t(group * d)),
                                dims > 0 ? rotary_table(288, dims) : std::vector<float>{},
                                dims};
          const DecodeResult first = step.run(usable_isas().front(), 1);
          for (const Isa isa : usable_isas()) {
            INFO(name(isa) << " " << name(dtype) << " d " << d << " group " << group << " turned "
                           << dims);
            const DecodeResult r = step.run(isa, 1);
            REQUIRE(same_bits(r.out, first.out));
            REQUIRE(same_bits(r.logits, first.logits));
            REQUIRE(same_bits(r.lse, first.lse));
          }
        }
}

TEST_CASE("cache positions: keys turn to their rank among the live slots of their own head",
          "[devices]") {
  const int32_t d = 64, heads = 4;
  const HeadShape shape{heads, 2, d};
  for (const DType dtype : kKvTypes)
    for (const int32_t dims : {64, 16}) {
      Home home(dtype, shape, 400, 3);
      DecodeStep step{home, {}, {}, normals(3, size_t(3 * heads * d)), rotary_table(500, dims),
                      dims};
      // evicted long ago; still filling; without a recent window
      const policy::SlotLayout layouts[] = {{2, 100, 290}, {0, 20, 40}, {0, 37, 0}};
      const int32_t at[] = {dims == 64 ? 70000 : 5000, 33, 900};
      std::vector<std::vector<int32_t>> ranks;
      std::mt19937 random(1);
      for (int32_t place = 0; place < 3; place++) {
        const policy::SlotLayout& l = layouts[place];
        policy::RowPlan plan;
        plan.slots = l;
        plan.positions = policy::Positions::cache;
        plan.scored = true;
        step.plans.push_back(plan);
        const Segment s{place, at[place], 1, place};
        step.segments.push_back(s);
        const int32_t live = l.live_rows(s.first);
        home.put_random(uint32_t(place), place, live);
        for (int32_t h = 0; h < 2; h++) {
          int32_t* const p = &home.positions[size_t((place * 2 + h) * home.slots())];
          for (int32_t slot = 0; slot < live; slot++) p[slot] = slot;
          if (l.evicts_at(s.first)) {
            std::vector<int32_t> old(size_t(s.first - l.recent - l.sinks));
            std::iota(old.begin(), old.end(), l.sinks);
            std::shuffle(old.begin(), old.end(), random);
            for (int32_t i = 0; i < l.heavy; i++) p[l.sinks + i] = old[size_t(i)];
            for (int32_t i = s.first - l.recent; i < s.first; i++) p[l.slot_of(i)] = i;
            p[l.capacity()] = s.first;
          }
          std::vector<int32_t> rank;
          for (int32_t slot = 0; slot < live; slot++)
            rank.push_back(
                int32_t(std::count_if(p, p + live, [&](int32_t o) { return o < p[slot]; })));
          ranks.push_back(rank);
        }
      }
      for (const DeviceChoice& choice : device_choices()) {
        INFO(choice.backend << " " << choice.options.isa << " " << name(dtype) << " dims " << dims);
        const DecodeResult r = step.run(choice);
        for (const Segment& s : step.segments)
          check_row(step, r, s, [&](int32_t kv_head, int32_t slot) {
            return ranks[size_t(s.place * 2 + kv_head)][size_t(slot)];
          });
        if (choice.backend != "cpu") continue;
        const DecodeResult three = step.run({"cpu", {3, choice.options.isa}});
        REQUIRE(same_bits(three.out, r.out));
        REQUIRE(same_bits(three.lse, r.lse));
      }
      if (dims == 16)  // the table must reach the last rank, and positions must be sane
        for (const DeviceChoice& choice : device_choices()) {
          DecodeStep shorter = step;
          shorter.table.resize(300 * 16);
          CHECK_THROWS_AS(shorter.run(choice), Error);
          for (const int32_t bad : {home.positions[9], -1, 5001}) {
            const int32_t kept = std::exchange(home.positions[7], bad);
            CHECK_THROWS_AS(step.run(choice), Error);
            home.positions[7] = kept;
          }
        }
    }
}

TEST_CASE("a NaN reaches the heads that see it and no others", "[devices]") {
  const HeadShape shape{6, 2, 24};
  const size_t out_size = 6 * 24;
  for (const DType dtype : kKvTypes)
    for (const DeviceChoice& choice : device_choices())
      for (const float bad : {float(NAN), kInf}) {
        INFO(choice.backend << " " << choice.options.isa << " " << name(dtype) << " " << bad);
        Home home(dtype, shape, 304, 2);
        home.put_random(1, 0, 300);
        home.put_random(2, 1, 299);
        DecodeStep step{home,
                        {roomy(304), roomy(304)},
                        {segment_of(0, 300, 0), segment_of(1, 299, 1)},
                        normals(3, 2 * out_size),
                        {}};
        const DecodeResult clean = step.run(choice);

        DecodeStep broken = step;  // query head 4 of the second row
        broken.q[out_size + 4 * 24 + 5] = bad;
        const DecodeResult r = broken.run(choice);
        for (size_t head = 0; head < 12; head++) {
          const bool hit = head == 10;
          CHECK(std::isnan(r.lse[head]) == hit);
          for (size_t i = head * 24; i < (head + 1) * 24; i++)
            if (hit ? !std::isnan(r.out[i]) : r.out[i] != clean.out[i]) FAIL("head " << head);
        }

        std::vector<float> key(24, 0.5f), value(24, 0.25f);  // a value: no logit is touched
        key[3] = value[3] = bad;
        const std::vector<float> good(24, 0.5f);
        home.put(0, 1, 298, good.data(), value.data());
        const DecodeResult with_value = step.run(choice);
        CHECK(!std::isfinite(with_value.out[3 * 24 + 3]));
        CHECK(std::isfinite(with_value.out[3 * 24 + 4]));
        CHECK(std::isfinite(with_value.lse[3]));
        CHECK(same_bits(row_of(with_value.out, 0, 3 * 24), row_of(clean.out, 0, 3 * 24)));
        CHECK(same_bits(row_of(with_value.out, 1, out_size), row_of(clean.out, 1, out_size)));
      }
}

TEST_CASE("logits of minus infinity weigh nothing, and a row of nothing else is NaN", "[devices]") {
  const HeadShape shape{2, 1, 8};
  for (const DeviceChoice& choice : device_choices()) {
    Home home(DType::f32, shape, 528), without(DType::f32, shape, 528);
    std::vector<float> q(16, 1.0f), key(8, 0.5f), none(8, -kInf);
    DecodeStep step{home, {roomy(528)}, {segment_of(0, 520, 0)}, q, {}};
    const std::vector<float> value(8, 2.0f), lost(8, 7.0f);
    for (int32_t slot = 0; slot < 520; slot++)  // the whole first part and most of the others
      home.put(0, 0, slot, slot >= 500 ? key.data() : none.data(),
               slot >= 500 ? value.data() : lost.data());
    const DecodeResult r = step.run(choice);
    CHECK(r.out == std::vector<float>(16, 2.0f));
    CHECK(std::fabs(r.lse[0] - (1.0f + std::log(20.0f))) < 1e-5f);
    for (int32_t slot = 500; slot < 520; slot++) home.put(0, 0, slot, none.data(), value.data());
    const DecodeResult nothing = step.run(choice);
    CHECK(std::isnan(nothing.out[0]));
    CHECK(nothing.lse[0] == -kInf);
  }
}

TEST_CASE("logits of 1e10 give exact one-hot attention", "[devices]") {
  const HeadShape shape{1, 1, 8};
  for (const DeviceChoice& choice : device_choices())
    for (const int32_t winner : {0, 100, 299}) {
      Home home(DType::f32, shape, 304);
      for (int32_t slot = 0; slot < 300; slot++) {
        std::vector<float> key(8, slot == winner ? 1e5f : float(slot) * 300), value(8, float(slot));
        home.put(0, 0, slot, key.data(), value.data());
      }
      DecodeStep step{home, {roomy(304)}, {segment_of(0, 300, 0)}, std::vector<float>(8, 1e5f), {}};
      step.scale = 1;
      const DecodeResult r = step.run(choice);
      CHECK(r.out == std::vector<float>(8, float(winner)));
      CHECK(r.lse[0] == r.logits[size_t(winner)]);
      CHECK(std::fabs(r.lse[0] / 8e10f - 1) < 1e-6f);
    }
}

TEST_CASE("decode takes exactly the scratch that was foretold for its largest step") {
  const HeadShape shape{6, 2, 64};
  Home home(DType::bf16, shape, 1024, 3);
  for (int32_t place = 0; place < 3; place++) home.put_random(1, place, 1000);
  DecodeStep step{home,
                  std::vector<policy::RowPlan>(3, roomy(1024)),
                  {segment_of(0, 1000, 0), segment_of(1, 3, 1), segment_of(2, 600, 2)},
                  normals(1, 3 * 6 * 64),
                  {}};
  CHECK(step.run(usable_isas().back(), 2).scratch_bytes ==
        attend_decode_bytes(shape, 3, 1024, -1, 2));
  step.plans[0].positions = policy::Positions::cache;
  step.dims = 64;
  step.table = rotary_table(1024, 64);
  std::iota(home.positions.begin(), home.positions.begin() + 2048, 0);
  std::iota(home.positions.begin() + 1024, home.positions.begin() + 2048, 0);
  CHECK(step.run(usable_isas().back(), 2).scratch_bytes ==
        attend_decode_bytes(shape, 3, 1024, 999, 2));
}
