// A row's tokens, log-probabilities and kept positions do not depend on what runs beside it: the
// same bits on the CPU, the same choices on a card.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "runtime/backends/cpu/isa.hpp"
#include "test/end_to_end/run_job.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;
using policy::Id;
using policy::Positions;

namespace {

// Rows of all policies and lengths in one job.
std::vector<Request> mixed_rows(const ModelSpec& spec, bool sampled) {
  const Positions places = spec.block.rotary.dims > 0 ? Positions::cache : Positions::original;
  const std::vector<NaivePolicy> policies{
      {Id::full, {}},          {Id::h2o, {0, 5, 4}},         {Id::sinks, {2, 0, 7}, places},
      {Id::tova, {0, 17, 1}},  {Id::h2o_promote, {0, 4, 4}}, {Id::h2o, {2, 6, 3}, places},
      {Id::local, {0, 0, 21}}, {Id::h2o, {0, 200, 200}}};
  const std::vector<int64_t> lengths{1, 33, 8, 50, 17, 2, 29, 16, 64, 5, 31};
  Random random(23);
  std::vector<Request> rows;
  for (size_t i = 0; i < lengths.size(); i++) {
    std::vector<int32_t> prompt(static_cast<size_t>(lengths[i]));
    for (int32_t& id : prompt) id = int32_t(random.below(spec.vocab));
    rows.push_back(
        request_of(spec, prompt, int32_t(5 + random.below(14)), policies[i % policies.size()]));
    rows.back().report_kept = true;
    if (!sampled) continue;
    rows.back().sampling.temperature = 0.8f;
    rows.back().sampling.top_p = 0.95f;
    rows.back().sampling.repetition_penalty = 1.1f;
    rows.back().sampling.seed = 100 + i;
  }
  return rows;
}

std::vector<Completion> each_alone(Engine& engine, const std::vector<Request>& rows, DType kv) {
  std::vector<Completion> done;
  for (const Request& r : rows)
    done.push_back(run_all(engine.generator({1, 1, 1024, 1024}, kv), {r})[0]);
  return done;
}

void require_same(const std::vector<Completion>& a, const std::vector<Completion>& b,
                  double more = 0) {
  REQUIRE(a.size() == b.size());
  for (size_t row = 0; row < a.size(); row++) {
    CAPTURE(row);
    REQUIRE(same_result(a[row], b[row], more));
  }
}

constexpr bool kEmulated = !test_backend().empty();  // which is slow

}  // namespace

TEST_CASE("a row has the same bits alone and in any batch, group split and chunk size",
          "[bits][devices]") {
  size_t cell = 0;
  for (const std::string& kind : tiny_kinds())
    for (const bool sampled : {false, true}) {
      if (kEmulated && sampled != (kind == "llama")) continue;
      CAPTURE(kind, sampled);
      Engine engine(tiny_model(kind, 5));
      const std::vector<Request> rows = mixed_rows(engine.model.spec, sampled);
      const auto alone = each_alone(engine, rows, DType::f32);
      for (const BatchShape& shape : std::vector<BatchShape>{{11, 1, 256, 8192},
                                                             {4, 3, 256, 8192},
                                                             {3, 2, 1, 8192},
                                                             {2, 1, 7, 40},
                                                             {5, 2, 16, 1},
                                                             {11, 1, 33, 100}}) {
        if (kEmulated && cell++ % 5 > 0) continue;  // each shape once
        CAPTURE(shape.rows_per_group, shape.groups, shape.prefill_chunk, shape.prefill_tokens);
        require_same(run_all(engine.generator(shape), rows), alone);
      }
    }
}

TEST_CASE("a row has the same bits in any order of the rows", "[bits][devices]") {
  Engine engine(tiny_model("llama", 9));
  const std::vector<Request> rows = mixed_rows(engine.model.spec, false);
  const auto first = run_all(engine.generator({4, 1, 20, 60}), rows);
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Random random(1);
  for (int trial = 0; trial < (kEmulated ? 1 : 5); trial++) {
    for (size_t i = order.size(); i > 1; i--)
      std::swap(order[i - 1], order[size_t(random.below(int64_t(i)))]);
    std::vector<Request> shuffled;
    for (const size_t i : order) shuffled.push_back(rows[i]);
    const auto done = run_all(engine.generator({4, 1, 20, 60}), shuffled);
    for (size_t i = 0; i < order.size(); i++) REQUIRE(same_result(done[i], first[order[i]]));
  }
}

TEST_CASE("a row has the same bits with any number of threads and dtype of the cache",
          "[bits][devices]") {
  const TinyModel model = tiny_model("neox", 12);
  for (const DType kv : {DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(name(kv));
    Engine one(model, 1);
    const std::vector<Request> rows = mixed_rows(one.model.spec, false);
    const auto alone = each_alone(one, rows, kv);
    for (const int threads : {1, 2, 3, 5}) {
      if (kEmulated && threads > 1) continue;  // a card has none
      CAPTURE(threads);
      Engine many(model, threads);
      require_same(run_all(many.generator({3, 2, 13, 70}, kv), rows), alone,
                   kv == DType::f32 ? 0 : kFlippedRounding);
    }
  }
}

TEST_CASE("a row has the same bits on every instruction path", "[bits]") {
  for (const std::string& kind : tiny_kinds())
    for (const DType kv : {DType::f32, DType::bf16, DType::f16}) {
      const TinyModel model = tiny_model(kind, 77);
      std::vector<Completion> first;
      for (const cpu::Isa isa : cpu::usable_isas()) {
        CAPTURE(kind, name(kv), cpu::name(isa));
        Engine engine(model, 1, cpu::name(isa));
        const auto done =
            run_all(engine.generator({4, 2, 16, 100}, kv), mixed_rows(model.spec, false));
        if (first.empty()) first = done;
        require_same(done, first);
      }
    }
}

TEST_CASE("a budget that holds the whole row gives the full cache's bits", "[bits][devices]") {
  for (const std::string& kind : tiny_kinds()) {
    CAPTURE(kind);
    Engine engine(tiny_model(kind, 31));
    Random random(5);
    for (const int64_t length : {1, 20, 47}) {
      std::vector<int32_t> prompt(static_cast<size_t>(length));
      for (int32_t& id : prompt) id = int32_t(random.below(engine.model.spec.vocab));
      std::vector<Request> rows;
      for (const NaivePolicy& p : std::vector<NaivePolicy>{{Id::full, {}},
                                                           {Id::h2o, {0, 64, 64}},
                                                           {Id::local, {0, 0, 80}},
                                                           {Id::tova, {0, 70, 1}}}) {
        rows.push_back(request_of(engine.model.spec, prompt, 16, p));
        rows.back().report_kept = true;
      }
      // The exact budget: one slot for every position that is processed.
      rows.push_back(rows.front());
      for (policy::RowPlan& plan : rows.back().plans)
        plan = {{0, int32_t(length) + 10, 5}, Id::h2o, Positions::original, true};
      const auto done = run_all(engine.generator(), rows);
      for (size_t i = 1; i < done.size(); i++) REQUIRE(same_result(done[i], done[0]));
    }
  }
}

TEST_CASE("a generator can be used again, for other jobs too", "[bits][devices]") {
  Engine engine(tiny_model("opt", 2));
  const std::vector<Request> rows = mixed_rows(engine.model.spec, false);
  const std::vector<Request> few(rows.begin() + 2, rows.begin() + 5);
  Generator generator = engine.generator({4, 1, 16, 64});
  const auto run = [&](const std::vector<Request>& job) {
    std::vector<Completion> done(job.size());
    Listener listener;
    listener.on_done = [&](size_t row, Completion&& c) { done[row] = std::move(c); };
    generator.run(job, listener);
    return done;
  };
  const auto first = run(rows), again = run(rows), others = run(few), last = run(rows);
  require_same(again, first);
  require_same(last, first);
  require_same(others, {first.begin() + 2, first.begin() + 5});
}
