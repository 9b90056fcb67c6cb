// Prefill and decode steps of ragged batches through the real settle and store operations, with
// real keys and values, against the naive list of each head.
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "policies/budget.hpp"
#include "policies/registry.hpp"
#include "test/support/cache_home.hpp"
#include "test/support/naive_cache.hpp"

namespace hydrant::test {
namespace {

using policy::RowPlan;

constexpr int32_t kHeadDim = 8;

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int32_t below(int32_t n) { return int32_t(engine_() % uint32_t(n)); }
  template <class T>
  T of(std::initializer_list<T> all) {
    return all.begin()[below(int32_t(all.size()))];
  }

 private:
  std::mt19937 engine_;
};

// What a token's key (or, shifted, its value) holds: exact in every dtype.
enum class Part { key, rotated_key, value };
float content(Part part, int32_t row, int32_t kv_head, int32_t position, int32_t e) {
  return float((position * 31 + kv_head * 57 + row * 11 + e * 3 + int32_t(part) * 83) % 251 - 125);
}
using Vector = std::array<float, kHeadDim>;
Vector content(Part part, int32_t row, int32_t kv_head, int32_t position) {
  Vector x;
  for (int32_t e = 0; e < kHeadDim; e++) x[size_t(e)] = content(part, row, kv_head, position, e);
  return x;
}

// One row: its plan, its part in the batch, and the naive list of each KV head.
struct Row {
  RowPlan plan;
  Segment segment;
  int32_t prompt = 0, steps = 0, taken = 0;
  std::vector<NaiveCache> naive;  // [kv_head]
};

class Batch {
 public:
  explicit Batch(uint32_t seed)
      : random_(seed),
        bench_(random_choice(random_)),
        layout_{random_.of({DType::f32, DType::f16, DType::bf16}), kHeadDim},
        kv_heads_(1 + random_.below(3)),
        group_(1 + random_.below(8)),
        staged_(random_.below(2) == 1),
        home_(layout_, kPlaces, kv_heads_, kLongest) {}

  int64_t run() {
    for (int32_t place = 0; place < kPlaces; place++)
      if (random_.below(3) > 0) admit(place);
    int64_t head_steps = 0;
    for (;;) {
      std::vector<Row*> going;
      for (Row& row : rows_)
        if (row.taken < row.steps) going.push_back(&row);
      if (going.empty()) return head_steps;
      std::swap(going.front(), going[size_t(random_.below(int32_t(going.size())))]);
      step(going);
      for (const Row* row : going) check(*row);
      head_steps += int64_t(going.size()) * kv_heads_;
    }
  }

 private:
  static constexpr int32_t kPlaces = 5, kLongest = 80;

  static DeviceChoice random_choice(Random& random) {
    const auto choices = device_choices(1 + random.below(3));
    return choices[size_t(random.below(int32_t(choices.size())))];
  }

  RowPlan random_plan(int32_t prompt, int32_t steps) {
    const auto id = random_.of({policy::Id::full, policy::Id::local, policy::Id::sinks,
                                policy::Id::h2o, policy::Id::h2o_promote, policy::Id::tova});
    const auto positions = random_.of({policy::Positions::original, policy::Positions::cache});
    policy::Budget budget;
    do {
      const policy::Regions has = policy::regions(id);
      if (has.sinks) budget.sinks = random_.below(4);
      if (has.heavy) budget.heavy = random_.below(9);
      if (has.recent) budget.recent = random_.below(10);
    } while (!policy::problem(id, budget).empty());
    return policy::plan(id, positions, budget, prompt, steps);
  }

  // Gives the place to a new row and stores its prompt.
  void admit(int32_t place) {
    Row row;
    row.prompt = 1 + random_.below(30);
    row.steps = 1 + random_.below(50);
    row.plan = random_plan(row.prompt, row.steps);
    row.segment.place = place;
    home_.plans[size_t(place)] = row.plan;

    const bool raw_keys = row.plan.positions == policy::Positions::cache;
    Runs kv(layout_, kv_heads_, row.prompt), raw(layout_, kv_heads_, row.prompt);
    const int32_t stride = row.prompt + 3;
    std::vector<float> sum(size_t(kv_heads_) * size_t(stride)), last(sum.size());
    for (int32_t head = 0; head < kv_heads_; head++)
      for (int32_t p = 0; p < row.prompt; p++) {
        const auto key = content(Part::key, place, head, p),
                   rotated = content(Part::rotated_key, place, head, p),
                   value = content(Part::value, place, head, p);
        write_key(layout_, kv.head(head), p, raw_keys ? rotated.data() : key.data());
        write_key(layout_, raw.head(head), p, key.data());
        write_value(layout_, kv.head(head), p, value.data());
        sum[size_t(head * stride + p)] = float(random_.below(12));
        last[size_t(head * stride + p)] = float(random_.below(4));
      }
    StorePromptArgs args;
    args.prompt.segment = {place, 0, row.prompt, 0};
    args.prompt.length = row.prompt;
    args.prompt.stats_stride = stride;
    if (row.plan.scored) {
      args.prompt.sum = sum.data();
      args.prompt.last = last.data();
    }
    args.shape = {kv_heads_ * group_, kv_heads_, kHeadDim};
    store_prompt(bench_, home_, args, &kv, raw_keys ? &raw : nullptr);

    for (int32_t head = 0; head < kv_heads_; head++) {
      row.naive.emplace_back(row.plan.policy, row.plan.slots);
      row.naive.back().prompt(
          row.prompt, [&](int32_t p) { return sum[size_t(head * stride + p)]; },
          [&](int32_t p) { return last[size_t(head * stride + p)]; });
    }
    check(row);
    rows_.push_back(std::move(row));
  }

  // One decode step of some rows, in this order.
  void step(const std::vector<Row*>& rows) {
    // Offloaded: attention sees a copy of the keys and values, the rest is always the home's.
    std::vector<std::byte> copy = home_.bytes;
    CacheView from = home_.view();
    if (staged_) from.kv.data = copy.data();

    const int32_t heads = kv_heads_ * group_, slots = from.slots;
    std::vector<float> logits(rows.size() * size_t(heads * slots), 1e30f);
    const std::vector<float> lse(rows.size() * size_t(heads), 3.0f);
    std::vector<Segment> segments;
    std::vector<std::vector<int32_t>> mass(rows.size() * size_t(kv_heads_));  // by position
    for (size_t i = 0; i < rows.size(); i++) {
      Row& row = *rows[i];
      const int32_t place = row.segment.place, now = row.prompt + row.taken;
      row.segment = {place, now, 1, int32_t(i)};
      segments.push_back(row.segment);
      const int32_t landing = row.plan.slots.landing_of(now);
      for (int32_t head = 0; head < kv_heads_; head++) {
        std::byte* const runs = head_of(from, place, head);
        write_key(layout_, runs, landing, content(Part::key, place, head, now).data());
        write_value(layout_, runs, landing, content(Part::value, place, head, now).data());
        from.positions_of(place, head)[landing] = now;
        // Every query head gives each row all or nothing: exp is exactly 1 or 0, ties are frequent.
        auto& received = mass[i * size_t(kv_heads_) + size_t(head)];
        received.resize(size_t(now) + 1);
        for (int32_t g = 0; g < group_; g++)
          for (int32_t slot = 0; slot < row.plan.slots.live_rows(now); slot++) {
            const int32_t all = random_.below(2);
            logits[(i * size_t(heads) + size_t(head * group_ + g)) * size_t(slots) + size_t(slot)] =
                all ? 3.0f : -200.0f;
            received[size_t(from.positions_of(place, head)[slot])] += all;
          }
      }
    }
    settle_and_store(segments, logits, lse, copy);
    for (size_t i = 0; i < rows.size(); i++)
      for (int32_t head = 0; head < kv_heads_; head++) {
        const auto& received = mass[i * size_t(kv_heads_) + size_t(head)];
        const auto expected =
            rows[i]->naive[size_t(head)].step([&](int32_t p) { return received[size_t(p)]; });
        const int32_t place = segments[i].place;
        REQUIRE((from.victim[from.head_index(place, head)] >= 0) == expected.has_value());
      }
    for (Row* row : rows) row->taken++;
  }

  void settle_and_store(const std::vector<Segment>& segments, const std::vector<float>& logits,
                        const std::vector<float>& lse, const std::vector<std::byte>& copy) {
    const int32_t heads = kv_heads_ * group_;
    const auto t = int64_t(segments.size());
    home_.on_device(bench_, [&](const CacheView& to) {
      CacheView from = to;
      if (staged_)
        from.kv.data = static_cast<std::byte*>(bench_.put_bytes(copy.data(), copy.size()));
      bench_.ops().settle(*bench_.stream, {bench_.put(logits, {t, heads, to.slots}),
                                           bench_.put(lse, {t, heads}),
                                           {heads, kv_heads_, kHeadDim},
                                           segments,
                                           from});
      bench_.ops().store_decode(*bench_.stream, {segments, from, to});
    });
  }

  // The home holds what the lists hold, and under each position its own key and value.
  void check(const Row& row) {
    const CacheView view = home_.view();
    const int32_t place = row.segment.place;
    const int32_t stored = std::min(row.prompt + row.taken, row.plan.slots.capacity());
    for (int32_t head = 0; head < kv_heads_; head++) {
      const int32_t* positions = view.positions_of(place, head);
      auto found = as_tokens(positions, view.scores_of(place, head), stored);
      auto expected = row.naive[size_t(head)].tokens();
      if (!row.plan.scored)  // then nobody promises anything about scores
        for (auto* tokens : {&found, &expected})
          for (NaiveToken& token : *tokens) token.score = 0;
      REQUIRE(found == expected);
      Vector x;
      for (int32_t slot = 0; slot < stored; slot++) {
        read_key(layout_, head_of(view, place, head), slot, x.data());
        if (x != content(Part::key, place, head, positions[slot])) FAIL("key in slot " << slot);
        read_value(layout_, head_of(view, place, head), slot, x.data());
        if (x != content(Part::value, place, head, positions[slot])) FAIL("value in slot " << slot);
      }
    }
  }

  Random random_;
  Bench bench_;
  cpu::KvLayout layout_;
  int32_t kv_heads_, group_;
  bool staged_;
  CacheHome home_;
  std::vector<Row> rows_;
};

TEST_CASE("ragged batches keep what the lists keep, under their own keys and values", "[devices]") {
  const bool emulated = test_backend() == "cuda";
  int64_t head_steps = 0;
  for (uint32_t seed = 1; seed <= (emulated ? 40u : 800u); seed++) {
    CAPTURE(seed);
    head_steps += Batch(seed).run();
  }
  CHECK(head_steps > (emulated ? 6000 : 120000));
}

}  // namespace
}  // namespace hydrant::test
