// Batches and their limits: every prompt is computed once and whole, whoever ends when.
#include "runtime/engine/batch.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>

using namespace hydrant;
using policy::Positions;

namespace {

ModelSpec two_layers() {
  ModelSpec spec;
  spec.layers = 2;
  spec.vocab = 100;
  spec.max_positions = 1000;
  return spec;
}

Request request(int32_t length, int32_t capacity, bool scored = false,
                Positions positions = Positions::original) {
  Request r;
  for (int32_t i = 0; i < length; i++) r.prompt.push_back(i % 100);
  r.max_new_tokens = 10;
  r.plans.assign(2, {{0, capacity, 0}, policy::Id::h2o, positions, scored});
  return r;
}

// Runs a job without computing anything.
struct Dry {
  Dry(const std::vector<Request>& job, BatchShape how)
      : rows(job), shape(how), limits(job_limits(spec, rows, shape)), batch(rows, shape, limits) {}

  // One step; the indices of the rows admitted.
  std::vector<size_t> step() {
    std::vector<size_t> admitted;
    batch.admit([&](LiveRow& row) { admitted.push_back(row.index); });
    if (!batch.plan(plan)) return admitted;
    for (const GroupStep& group : plan.groups) {
      batch.advance(group);
      for (const StepOutput& o : group.outputs)
        batch.row(group.group, o.place).completion.tokens.push_back({});
    }
    return admitted;
  }

  ModelSpec spec = two_layers();
  std::vector<Request> rows;
  BatchShape shape;
  JobLimits limits;
  Batch batch;
  Step plan;
};

// What a plan must be, whatever the job: see step.hpp.
void check_plan(Dry& dry) {
  const Step& step = dry.plan;
  const JobLimits& limits = dry.limits;
  REQUIRE(step.ids.size() == step.positions.size());
  REQUIRE(int64_t(step.ids.size()) <= limits.step_tokens);
  REQUIRE(int64_t(step.prompts.size()) <= limits.prompts);
  REQUIRE(step.prompt_runs <= limits.prompt_runs);
  REQUIRE(step.prompt_stats <= limits.prompt_stats);
  REQUIRE(step.chunks.size() <= most_chunks(limits));
  int32_t token = 0, output = 0;
  size_t chunk = 0;
  std::map<size_t, int32_t> done;  // of each prompt
  for (const GroupStep& group : step.groups) {
    REQUIRE(group.first_output == output);
    output += int32_t(group.outputs.size());
    for (const Piece& piece : group.pieces) {
      REQUIRE(piece.token == token);
      REQUIRE(piece.tokens > 0);
      REQUIRE(piece.tokens <= limits.piece_tokens);
      int32_t inside = 0;
      for (size_t i = 0; i < piece.segments; i++) {
        const Segment& s =
            piece.decode ? group.decode[piece.segment + i] : step.chunks[piece.segment + i].segment;
        REQUIRE(s.token == inside);
        REQUIRE(s.count > 0);
        for (int32_t t = 0; t < s.count; t++)
          REQUIRE(step.positions[size_t(piece.token + inside + t)] == s.first + t);
        inside += s.count;
        if (piece.decode) {
          REQUIRE(s.count == 1);
          continue;
        }
        REQUIRE(piece.tokens <= dry.shape.prefill_chunk);
        REQUIRE(piece.segment + i == chunk);
        int32_t& before = done[step.chunks[chunk].prompt];
        REQUIRE(s.first == before);
        before += s.count;
        chunk++;
      }
      REQUIRE(inside == piece.tokens);
      token += piece.tokens;
    }
  }
  REQUIRE(token == int32_t(step.ids.size()));
  REQUIRE(chunk == step.chunks.size());
  REQUIRE(done.size() == step.prompts.size());
  for (const auto& [prompt, length] : done) REQUIRE(length == step.prompts[prompt].length);
}

}  // namespace

TEST_CASE("rows are admitted in order, within the limit of prompt tokens, at least one",
          "[batch]") {
  std::vector<Request> job;
  for (const int32_t length : {30, 50, 40, 300, 1, 1}) job.push_back(request(length, 1000));
  Dry dry(job, {2, 2, 64, 100});
  CHECK(dry.step() == std::vector<size_t>{0, 1});  // 30 + 50 + 40 are too many
  CHECK(dry.step() == std::vector<size_t>{2});
  CHECK(dry.step() == std::vector<size_t>{3});  // more than the limit, but alone
  CHECK(dry.step().empty());                    // all four places are taken
  dry.batch.row(0, 1).request = nullptr;
  dry.batch.row(1, 1).request = nullptr;
  CHECK(dry.step() == std::vector<size_t>{4, 5});
  CHECK(dry.batch.row(0, 1).index == 4);
  CHECK(dry.batch.begun() == 6);
}

TEST_CASE("short prompts share a piece and long ones are cut", "[batch]") {
  std::vector<Request> job;
  for (const int32_t length : {3, 4, 9, 1}) job.push_back(request(length, 1000));
  Dry dry(job, {4, 1, 8, 100});
  dry.step();
  check_plan(dry);
  const GroupStep& group = dry.plan.groups[0];
  REQUIRE(group.pieces.size() == 3);
  CHECK(group.pieces[0].tokens == 8);  // 3 + 4 + 1
  CHECK(group.pieces[1].tokens == 8);
  CHECK(group.pieces[2].tokens == 1);
  CHECK(dry.plan.chunks.size() == 5);
  CHECK(group.outputs[2].token == 15);
  dry.step();
  check_plan(dry);
  REQUIRE(dry.plan.groups[0].pieces.size() == 1);
  CHECK(dry.plan.groups[0].pieces[0].decode);
  CHECK(dry.plan.decoded == 4);
}

TEST_CASE("random jobs stay within their limits and compute every row once", "[batch]") {
  std::mt19937 random(11);
  const auto below = [&](int32_t n) { return int32_t(random() % uint32_t(n)); };
  for (int trial = 0; trial < 300; trial++) {
    CAPTURE(trial);
    std::vector<Request> job;
    const int32_t count = 1 + below(40), longest = 1 + below(60);
    for (int32_t i = 0; i < count; i++)
      job.push_back(request(1 + below(longest), 1 + below(50), below(2) == 0,
                            below(4) == 0 ? Positions::cache : Positions::original));
    Dry dry(job, {1 + below(6), 1 + below(3), 1 + below(30), 1 + below(150)});
    std::vector<int> times(job.size());
    size_t next = 0;
    while (true) {
      for (const size_t row : dry.step()) {
        REQUIRE(row == next++);
        times[row]++;
      }
      if (dry.plan.ids.empty()) break;
      check_plan(dry);
      for (LiveRow& row : dry.batch.places())
        if (row.request && below(3) == 0) row.request = nullptr;
    }
    REQUIRE(times == std::vector<int>(job.size(), 1));
  }
}

TEST_CASE("limits come from the rows that need them", "[batch]") {
  const ModelSpec spec = two_layers();
  const BatchShape shape{8, 3, 256, 100};
  const std::vector<Request> plain{request(20, 40), request(17, 40), request(40, 40)};
  const JobLimits a = job_limits(spec, plain, shape);
  CHECK(a.groups == 1);
  CHECK(a.rows_per_group == 3);
  CHECK(a.prompt_tokens == 77);
  CHECK(a.chunk_tokens == 77);
  CHECK(a.prompt_runs == 0);  // all prompts fit their homes
  CHECK(a.prompt_stats == 0);
  CHECK(a.ranks == 0);
  CHECK(a.slots == std::vector<int32_t>{40, 40});

  const std::vector<Request> mixed{request(20, 10, true), request(17, 40),
                                   request(30, 40, false, Positions::cache)};
  const JobLimits b = job_limits(spec, mixed, shape);
  CHECK(b.prompt_runs == 2 + 2 * 2);  // 20 tokens beyond 10 slots; rotated and raw keys of 30
  CHECK(b.prompt_stats == 32);
  CHECK(b.scored);
  CHECK(b.ranks == 41);
}

TEST_CASE("a limit in the millions takes no room before its tokens come") {
  std::vector<Request> rows(4, request(3, 8, false, Positions::cache));
  for (Request& row : rows) {
    row.max_new_tokens = 1 << 24;
    row.sampling.repetition_penalty = 1.5f;
  }
  Dry dry(rows, {4, 1, 64, 64});
  CHECK(dry.step().size() == 4);
  for (const LiveRow& row : dry.batch.places()) {
    CHECK(row.completion.tokens.capacity() < 5000);
    CHECK(row.seen.capacity() < 5000);
  }
}
