// Queries, keys and values out of the joint projection: rotated, and in their slots.
#include <cmath>
#include <numeric>

#include "test/support/backend_fixture.hpp"
#include "test/support/kv_content.hpp"
#include "test/support/near.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;
using policy::Positions;

namespace {

struct Model {
  HeadShape shape;
  int32_t dims;
  DType dtype;

  int64_t width() const {
    return (int64_t{shape.heads} + 2 * int64_t{shape.kv_heads}) * shape.head_dim;
  }
  cpu::KvLayout layout() const { return {dtype, shape.head_dim}; }
  double rounding() const {  // of one stored key or value, relative
    return dtype == DType::f32 ? 0 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  }
};

const Model kModels[] = {{{9, 3, 64}, 64, DType::bf16},
                         {{4, 4, 24}, 6, DType::f32},  // partial rotation
                         {{2, 1, 16}, 16, DType::f16},
                         {{3, 3, 8}, 0, DType::f32}};  // no rotation

// `tokens` rows of qkv with their angles.
struct Inputs {
  std::vector<float> qkv, table;
  Inputs(const Model& m, int64_t tokens) : qkv(Random(3).floats(tokens * m.width(), -2, 2)) {
    Random random(4);
    for (int64_t i = 0; i < tokens * m.dims / 2; i++) {
      const float angle = random.uniform(0, 7);
      table.push_back(std::cos(angle));
      table.push_back(std::sin(angle));
    }
  }
  Rotary rotary(Bench& bench, const Model& m, int64_t tokens) const {
    if (m.dims == 0) return {};
    return {m.dims, bench.put(table, {tokens, m.dims / 2, 2})};
  }
  // Component e of head `head` (queries, then keys, then values) of a token, rotated or not. Two
  // products and their sum are rounded: 2 units of the products.
  Expected at(const Model& m, int64_t token, int64_t head, int64_t e, bool rotated) const {
    const float* x = qkv.data() + token * m.width() + head * m.shape.head_dim;
    if (!rotated || e >= m.dims) return {x[e], 0};
    const int64_t half = m.dims / 2, j = e % half;
    const float* turn = table.data() + (token * half + j) * 2;
    const double c = turn[0], s = turn[1], a = x[j], b = x[j + half];
    return e < half ? Expected{a * c - b * s, 2 * kRound * (std::abs(a * c) + std::abs(b * s))}
                    : Expected{b * c + a * s, 2 * kRound * (std::abs(b * c) + std::abs(a * s))};
  }
};

void check_queries(const Model& m, const Inputs& x, const std::vector<float>& q, int64_t token,
                   bool rotated) {
  const int64_t width = int64_t{m.shape.heads} * m.shape.head_dim;
  check_near({q.begin() + token * width, q.begin() + (token + 1) * width}, [&](size_t i) {
    return x.at(m, token, int64_t(i) / m.shape.head_dim, int64_t(i) % m.shape.head_dim, rotated);
  });
}

// What the runs of a row's heads hold.
struct Content {
  std::vector<std::byte> bytes;
  size_t head_bytes = 0;
  const std::byte* head(int32_t h) const { return bytes.data() + size_t(h) * head_bytes; }
};

// Key and value of a slot must be those of the token.
void check_slot(const Model& m, const Inputs& x, const Content& runs, int64_t slot, int64_t token,
                bool rotated) {
  for (int32_t h = 0; h < m.shape.kv_heads; h++) {
    std::vector<float> key(size_t(m.shape.head_dim)), value(key);
    const std::byte* const head = runs.head(h);
    read_key(m.layout(), head, slot, key.data());
    read_value(m.layout(), head, slot, value.data());
    const auto stored = [&](int64_t from, size_t e, bool turned) {
      Expected expected = x.at(m, token, from + h, int64_t(e), turned);
      expected.tolerance += m.rounding() * std::abs(expected.value);
      return expected;
    };
    check_near(key, [&](size_t e) { return stored(m.shape.heads, e, rotated); });
    check_near(value, [&](size_t e) { return stored(m.shape.heads + m.shape.kv_heads, e, false); });
  }
}

KvRuns make_runs(Bench& bench, const Model& m, int32_t slots) {
  const size_t run = bench.ops().kv_run_bytes(m.dtype, m.shape.head_dim);
  const size_t head = size_t((slots + kRunSlots - 1) / kRunSlots) * run;
  return {static_cast<std::byte*>(bench.bytes(head * size_t(m.shape.kv_heads), 0x11)), head, run};
}

Content content(Bench& bench, const KvRuns& runs, const Model& m) {
  Content c{std::vector<std::byte>(runs.head_bytes * size_t(m.shape.kv_heads)), runs.head_bytes};
  bench.get_bytes(c.bytes.data(), runs.data, c.bytes.size());
  return c;
}

struct PromptResult {
  std::vector<float> q;
  Content kv, raw;
};

// A prompt of `length` cut at `cuts`, one call each; before it `padding` tokens of someone else.
PromptResult split_prompt(Bench& bench, const Model& m, const Inputs& x, int32_t length,
                          const std::vector<int32_t>& cuts) {
  const KvRuns runs = make_runs(bench, m, length), raw = make_runs(bench, m, length);
  PromptResult result;
  for (size_t i = 0; i + 1 < cuts.size(); i++) {
    const int32_t first = cuts[i], count = cuts[i + 1] - first;
    const auto part = [&](const std::vector<float>& all, int64_t row) {
      return std::vector<float>(all.begin() + first * row, all.begin() + (first + count) * row);
    };
    Rotary rotary;
    if (m.dims) rotary = {m.dims, bench.put(part(x.table, m.dims), {count, m.dims / 2, 2})};
    const Tensor q = bench.make(DType::f32, {count, m.shape.heads, m.shape.head_dim});
    const PromptSegment segment{{0, first, count, 0}, runs, raw, nullptr, nullptr, length, 0};
    bench.ops().split_prompt(*bench.stream, {bench.put(part(x.qkv, m.width()), {count, m.width()}),
                                             rotary,
                                             m.shape,
                                             {&segment, 1},
                                             m.dtype,
                                             q});
    const auto queries = bench.get(q);
    result.q.insert(result.q.end(), queries.begin(), queries.end());
  }
  result.kv = content(bench, runs, m);
  result.raw = content(bench, raw, m);
  return result;
}

}  // namespace

TEST_CASE("split_prompt rotates and stores, the same bits for every chunk, thread and path",
          "[devices]") {
  constexpr int32_t kLength = 150;
  for (const Model& m : kModels) {
    const Inputs x(m, kLength);
    PromptResult expected;
    for (const int threads : {1, 3})
      for (const DeviceChoice& choice : device_choices(threads))
        for (const auto& cuts : std::vector<std::vector<int32_t>>{
                 {0, kLength}, {0, 16, 32, kLength}, {0, 1, 7, 100, 149, kLength}}) {
          INFO(choice.options.isa << ", " << threads << " threads, " << cuts.size() << " cuts");
          Bench bench(choice);
          const auto result = split_prompt(bench, m, x, kLength, cuts);
          if (expected.q.empty()) {
            for (int32_t t = 0; t < kLength; t++) {
              check_queries(m, x, result.q, t, true);
              check_slot(m, x, result.kv, t, t, true);
            }
            for (int32_t t = 0; t < kLength; t++)
              for (int32_t h = 0; h < m.shape.kv_heads; h++) {
                std::vector<float> key(size_t(m.shape.head_dim));
                read_key(m.layout(), result.raw.head(h), t, key.data());
                check_near(key, [&](size_t e) -> Expected {
                  const double v = x.at(m, t, m.shape.heads + h, int64_t(e), false).value;
                  return {v, m.rounding() * std::abs(v)};
                });
              }
            expected = result;
          }
          CHECK(same_bits(result.q, expected.q));
          CHECK(same_bits(result.kv.bytes, expected.kv.bytes));
          CHECK(same_bits(result.raw.bytes, expected.raw.bytes));
        }
  }
}

TEST_CASE("split_prompt: several prompts in one step get what each gets alone", "[devices]") {
  const Model& m = kModels[0];
  const Inputs x(m, 120);
  for (const DeviceChoice& choice : device_choices(3)) {
    Bench bench(choice);
    // tokens 0-49 at positions 30-79, a hole, tokens 60-119 at positions 0-59 of a longer prompt
    KvRuns first = make_runs(bench, m, 80), second = make_runs(bench, m, 200);
    const PromptSegment segments[] = {{{0, 30, 50, 0}, first, {}, nullptr, nullptr, 80, 0},
                                      {{1, 0, 60, 60}, second, {}, nullptr, nullptr, 200, 0}};
    const Content untouched = content(bench, make_runs(bench, m, 200), m);
    const Tensor q = bench.make(DType::f32, {120, m.shape.heads, m.shape.head_dim});
    bench.ops().split_prompt(*bench.stream,
                             {bench.put(x.qkv, {120, m.width()}), x.rotary(bench, m, 120), m.shape,
                              segments, m.dtype, q});
    const auto queries = bench.get(q);
    const Content one = content(bench, first, m), two = content(bench, second, m);
    for (int32_t t = 0; t < 50; t++) check_slot(m, x, one, 30 + t, t, true);
    for (int32_t t = 0; t < 60; t++) check_slot(m, x, two, t, 60 + t, true);
    for (const int32_t t : {0, 49, 60, 119}) check_queries(m, x, queries, t, true);
    CHECK(std::isnan(queries[size_t(55 * m.shape.heads * m.shape.head_dim)]));  // nobody's token
    // Runs from 64 on belong to later chunks.
    const size_t later = 64 / kRunSlots * second.run_bytes;
    CHECK(std::equal(two.bytes.begin() + int64_t(later),
                     two.bytes.begin() + int64_t(two.head_bytes),
                     untouched.bytes.begin() + int64_t(later)));
  }
}

TEST_CASE("split_decode puts each token into its landing row", "[devices]") {
  for (const Model& m : kModels) {
    constexpr int32_t kPlaces = 5, kSlots = 32;
    const Inputs x(m, 5);
    // rows that fill, that are full, without a ring, and one with positions by rank; place 3 idle
    const policy::RowPlan plans[kPlaces] = {
        {{0, 8, 8}, policy::Id::h2o, Positions::original, false},
        {{0, 4, 4}, policy::Id::h2o, Positions::original, false},
        {{4, 3, 0}, policy::Id::h2o, Positions::cache, false},
        {{0, 0, 31}, policy::Id::full, Positions::original, false},
        {{0, 0, 31}, policy::Id::full, Positions::original, false}};
    const Segment segments[] = {{4, 30, 1, 0}, {0, 5, 1, 1}, {1, 100, 1, 2}, {2, 7, 1, 4}};
    const int32_t landing[] = {30, 5, 8, 7};
    for (const int threads : {1, 3})
      for (const DeviceChoice& choice : device_choices(threads)) {
        INFO(choice.options.isa << ", " << threads << " threads");
        Bench bench(choice);
        CacheView cache;
        cache.kv = make_runs(bench, m, kSlots);
        cache.place_bytes = cache.kv.head_bytes * size_t(m.shape.kv_heads);
        cache.kv.data = static_cast<std::byte*>(bench.bytes(cache.place_bytes * kPlaces, 0x11));
        const size_t heads = size_t(kPlaces * m.shape.kv_heads);
        cache.position = static_cast<int32_t*>(bench.bytes(heads * kSlots * 4, 0xff));
        cache.plans = plans;
        cache.places = kPlaces, cache.kv_heads = m.shape.kv_heads;
        cache.head_dim = m.shape.head_dim, cache.slots = kSlots, cache.dtype = m.dtype;
        const Content idle = content(bench, cache.row(3), m);
        const Tensor q = bench.make(DType::f32, {5, m.shape.heads, m.shape.head_dim});
        bench.ops().split_decode(
            *bench.stream,
            {bench.put(x.qkv, {5, m.width()}), x.rotary(bench, m, 5), m.shape, segments, cache, q});
        const auto queries = bench.get(q);
        std::vector<int32_t> positions(heads * kSlots);
        bench.get_bytes(positions.data(), cache.position, positions.size() * 4);
        for (size_t i = 0; i < 4; i++) {
          const Segment& s = segments[i];
          const bool rotated = plans[s.place].positions == Positions::original;
          INFO("place " << s.place);
          check_queries(m, x, queries, s.token, rotated);
          check_slot(m, x, content(bench, cache.row(s.place), m), landing[i], s.token, rotated);
          for (int32_t h = 0; h < m.shape.kv_heads; h++)
            for (int32_t slot = 0; slot < kSlots; slot++)
              CHECK(positions[cache.head_index(s.place, h) * kSlots + size_t(slot)] ==
                    (slot == landing[i] ? s.first : -1));
        }
        CHECK(same_bits(content(bench, cache.row(3), m).bytes, idle.bytes));
      }
  }
}
