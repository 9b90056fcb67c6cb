// How rows begin and end: stops, limits, failures, cancellation, places that fall free.
#include <catch2/catch.hpp>
#include <limits>

#include "runtime/base/error.hpp"
#include "test/end_to_end/run_job.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;
using policy::Id;

namespace {

std::vector<int32_t> random_prompt(Random& random, int64_t length) {
  std::vector<int32_t> ids(static_cast<size_t>(length));
  for (int32_t& id : ids) id = int32_t(random.below(60));  // 60 is kept for broken rows
  return ids;
}

std::vector<int32_t> ids_of(const Completion& c) {
  std::vector<int32_t> ids;
  for (const TokenChoice& t : c.tokens) ids.push_back(t.id);
  return ids;
}

}  // namespace

TEST_CASE("a stop id ends a row and is its last token", "[rows]") {
  Engine engine(tiny_model("llama", 1));
  Random random(2);
  Request r = request_of(engine.model.spec, random_prompt(random, 12), 20);
  const std::vector<int32_t> free = ids_of(run_all(engine.generator(), {r})[0]);
  r.stop_ids = {free[7], 9999};
  const auto stopped = run_all(engine.generator(), {r})[0];
  CHECK(stopped.finish == Finish::stop);
  const auto first = std::find(free.begin(), free.end(), free[7]) + 1;
  CHECK(ids_of(stopped) == std::vector<int32_t>(free.begin(), first));
}

TEST_CASE("a listener sees every token and logits, and can end a row", "[rows]") {
  Engine engine(tiny_model("llama", 1));
  Random random(2);
  std::vector<Request> rows;
  for (int i = 0; i < 3; i++)
    rows.push_back(request_of(engine.model.spec, random_prompt(random, 4 + 5 * i), 9));
  rows[1].top_logprobs = 4;
  std::vector<std::vector<int32_t>> seen(3);
  std::vector<int> logits(3);
  std::vector<Completion> done(3);
  Listener listener;
  listener.on_logits = [&](size_t row, std::span<const float> l) {
    logits[row]++;
    REQUIRE(l.size() == size_t(engine.model.spec.vocab));
  };
  listener.on_token = [&](size_t row, const TokenChoice& token) {
    seen[row].push_back(token.id);
    CHECK(token.best.size() == (row == 1 ? 4u : 0u));
    return !(row == 2 && seen[row].size() == 4);
  };
  listener.on_done = [&](size_t row, Completion&& c) { done[row] = std::move(c); };
  engine.generator({3, 1, 8, 100}).run(rows, listener);
  for (size_t row = 0; row < 3; row++) {
    CHECK(ids_of(done[row]) == seen[row]);
    CHECK(logits[row] == int(seen[row].size()));
  }
  CHECK(done[1].finish == Finish::length);
  CHECK(done[1].tokens[3].best[0].id == done[1].tokens[3].id);
  CHECK(done[2].finish == Finish::stop);
  CHECK(done[2].tokens.size() == 4);
}

TEST_CASE("the model's positions end a row, and a longer prompt is refused", "[rows]") {
  Engine engine(tiny_model("opt", 1));
  const int32_t limit = engine.model.spec.max_positions;
  Random random(2);
  const NaivePolicy h2o{Id::h2o, {0, 8, 8}};
  for (const NaivePolicy& p : {NaivePolicy{}, h2o}) {
    std::vector<Request> rows;
    for (const int32_t length : {limit - 1, limit, limit - 3})
      rows.push_back(request_of(engine.model.spec, random_prompt(random, length), 10, p));
    const auto done = run_all(engine.generator({3, 1, 50, 1000}), rows);
    // After t tokens n + t - 1 positions have been processed, at most `limit`.
    CHECK(done[0].tokens.size() == 2);
    CHECK(done[1].tokens.size() == 1);
    CHECK(done[2].tokens.size() == 4);
    for (const Completion& c : done) CHECK(c.finish == Finish::length);

    rows.push_back(request_of(engine.model.spec, random_prompt(random, limit + 1), 10, p));
    try {
      run_all(engine.generator(), rows);
      FAIL("a prompt over the limit was run");
    } catch (const Error& e) {
      CHECK(e.fault() == Fault::bad_input);
      CHECK(std::string(e.what()) ==
            "row 3: the prompt has 97 tokens, it may have 1 to 96, the model's positions");
    }
  }
}

TEST_CASE("a row whose logits are not finite fails alone, and its place can be used again",
          "[rows]") {
  using Limits = std::numeric_limits<float>;
  for (const float broken : {Limits::quiet_NaN(), Limits::infinity()}) {
    TinyModel model = tiny_model("llama", 4);
    TinyMatrix& tokens = model.stages[0].matrices[Matrix::tokens];
    for (int64_t i = 0; i < tokens.k; i++) tokens.values[size_t(60 * tokens.k + i)] = broken;
    // Nobody chooses it: its logit is 0.
    TinyMatrix& head = model.stages.back().matrices[Matrix::head];
    for (int64_t i = 0; i < head.k; i++) head.values[size_t(60 * head.k + i)] = 0;
    Engine engine(model);
    Random random(2);
    const NaivePolicy policies[] = {{Id::full, {}}, {Id::h2o, {0, 6, 5}}, {Id::local, {0, 0, 7}}};
    std::vector<Request> rows;
    for (int i = 0; i < 9; i++) {
      rows.push_back(
          request_of(engine.model.spec, random_prompt(random, 10 + 3 * i), 15, policies[i % 3]));
      if (i % 2 == 0) continue;
      // At once, and later.
      if (i % 4 == 1)
        rows.back().prompt[4] = 60;
      else
        rows.back().forced.assign(15, 60);
    }
    for (const BatchShape& shape : {BatchShape{1, 1, 64, 100}, BatchShape{3, 1, 16, 100}}) {
      const auto done = run_all(engine.generator(shape), rows);
      for (size_t row = 0; row < rows.size(); row++) {
        CAPTURE(row, shape.rows_per_group, broken);
        if (row % 2 == 0) {
          REQUIRE(done[row].finish == Finish::length);
          REQUIRE(same_result(done[row], run_all(engine.generator(), {rows[row]})[0]));
        } else {
          REQUIRE(done[row].finish == Finish::failed);
          const size_t step = row % 4 == 1 ? 0 : 1;
          REQUIRE(done[row].tokens.size() == step);
          REQUIRE(done[row].error == fmt::format("the logits of token {} are not finite", step));
        }
      }
    }
  }
}

TEST_CASE("a thousand prompts run in the places of a few", "[rows]") {
  Engine engine(tiny_model("neox", 3));
  Random random(8);
  std::vector<Request> rows;
  const int count = test_backend().empty() ? 1000 : 60;  // emulated devices are slow
  for (int i = 0; i < count; i++) {
    const NaivePolicy p = i % 2 ? NaivePolicy{} : NaivePolicy{Id::h2o, {0, 3, 3}};
    rows.push_back(request_of(engine.model.spec, random_prompt(random, 1 + random.below(12)),
                              int32_t(1 + random.below(6)), p));
  }
  rows[0] = request_of(engine.model.spec, random_prompt(random, 12), 6);  // the largest is first
  Generator generator = engine.generator({5, 2, 16, 24});
  const MemoryNeed all = generator.need(rows), few = generator.need({rows.data(), 10});
  CHECK(all.kv == few.kv);

  std::vector<Completion> done(rows.size());
  std::vector<int> times(rows.size());
  Listener listener;
  listener.on_done = [&](size_t row, Completion&& c) {
    times[row]++;
    done[row] = std::move(c);
  };
  const RunFigures figures = generator.run(rows, listener);
  CHECK(times == std::vector<int>(rows.size(), 1));
  CHECK(figures.kv_bytes == all.kv);
  int64_t generated = 0, prompts = 0;
  const auto alone = run_all(engine.generator({1, 1, 64, 64}), rows);
  for (size_t row = 0; row < rows.size(); row++) {
    REQUIRE(same_result(done[row], alone[row]));
    generated += int64_t(done[row].tokens.size());
    prompts += int64_t(rows[row].prompt.size());
  }
  CHECK(figures.generated_tokens == generated);
  CHECK(figures.prompt_tokens == prompts);
  CHECK(figures.prefill_seconds > 0);
  CHECK(figures.decode_seconds > 0);
  CHECK(figures.decode_steps > count / 5);
}

TEST_CASE("cancelling ends the rows in flight with what they have", "[rows]") {
  Engine engine(tiny_model("opt", 3));
  Random random(8);
  std::vector<Request> rows;
  for (int i = 0; i < 6; i++)
    rows.push_back(request_of(engine.model.spec, random_prompt(random, 7), i == 0 ? 2 : 20));
  const auto whole = run_all(engine.generator(), rows);
  int steps = 0;  // in each of which row 1 gets a token
  std::vector<std::pair<size_t, Completion>> done;
  Listener listener;
  listener.on_token = [&](size_t row, const TokenChoice&) {
    steps += row == 1;
    return true;
  };
  listener.cancelled = [&] { return steps == 4; };
  listener.on_done = [&](size_t row, Completion&& c) { done.emplace_back(row, std::move(c)); };
  engine.generator({3, 1, 64, 100}).run(rows, listener);
  REQUIRE(done.size() == 6);
  // Row 0 was done after two steps and row 3 took its place.
  const std::vector<std::pair<size_t, size_t>> expected{{0, 2}, {3, 2}, {1, 4},
                                                        {2, 4}, {4, 0}, {5, 0}};
  for (size_t i = 0; i < done.size(); i++) {
    CAPTURE(i);
    const auto& [row, completion] = done[i];
    CHECK(row == expected[i].first);
    CHECK(completion.tokens.size() == expected[i].second);
    CHECK(completion.finish == (row == 0 ? Finish::length : Finish::cancelled));
    const auto ids = ids_of(whole[row]);
    CHECK(ids_of(completion) ==
          std::vector<int32_t>(ids.begin(), ids.begin() + std::ptrdiff_t(expected[i].second)));
  }
}

TEST_CASE("requests that cannot be run are refused before anything is computed", "[rows]") {
  Engine engine(tiny_model("opt", 3));
  const Request good = request_of(engine.model.spec, {1, 2, 3}, 4);
  const auto refusal = [&](auto&& spoil) {
    Request bad = good;
    spoil(bad);
    try {
      run_all(engine.generator(), {good, bad});
    } catch (const Error& e) {
      CHECK(e.fault() == Fault::bad_input);
      return std::string(e.what());
    }
    return std::string("not refused");
  };
  using R = Request;
  CHECK(refusal([](R& r) { r.prompt.clear(); }) == "row 1: the prompt has no tokens");
  CHECK(refusal([](R& r) { r.prompt[1] = 61; }) ==
        "row 1: prompt id 61: must be 0 to 60, the model's vocabulary");
  CHECK(refusal([](R& r) { r.prompt[1] = -1; }) ==
        "row 1: prompt id -1: must be 0 to 60, the model's vocabulary");
  CHECK(refusal([](R& r) { r.max_new_tokens = 0; }) ==
        "row 1: max_new_tokens is 0, must be at least 1");
  CHECK(refusal([](R& r) {
          r.forced = {1, 2};
        }) == "row 1: 2 forced tokens, but max_new_tokens is 4");
  CHECK(refusal([](R& r) {
          r.forced = {1, 2, 3, 61};
        }) == "row 1: continuation id 61: must be 0 to 60, the model's vocabulary");
  CHECK(refusal([](R& r) { r.top_logprobs = 21; }) ==
        "row 1: top_logprobs is 21, must be from 0 to 20");
  CHECK(refusal([](R& r) { r.sampling.temperature = -1; }) ==
        "row 1: temperature is -1, must be at least 0");
  CHECK(refusal([](R& r) { r.sampling.top_p = 0; }) ==
        "row 1: top_p is 0, must be above 0 and at most 1");
  CHECK(refusal([](R& r) { r.sampling.min_p = 2; }) == "row 1: min_p is 2, must be from 0 to 1");
  CHECK(refusal([](R& r) { r.sampling.repetition_penalty = 0; }) ==
        "row 1: repetition_penalty is 0, must be above 0");
  CHECK(refusal([](R& r) {
          for (auto& plan : r.plans) plan.positions = policy::Positions::cache;
        }) == "row 1: positions within the cache need rotary embedding, which opt does not have");
  CHECK(refusal([](R& r) {
          r.prompt.assign(90, 1);
          r.max_new_tokens = 8;
          r.forced.assign(8, 1);
        }) ==
        "row 1: context and continuation have 98 tokens, they may have 2 to 97, the model's "
        "positions and one that is judged but not fed");
}
