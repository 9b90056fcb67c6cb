// What operations of every device promise beyond their values: rows and prompts of a step do not
// touch each other, and results that are not wanted may be missing.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "test/ops/attend_prompt_cases.hpp"
#include "test/ops/decode_step.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

std::vector<float> part(const std::vector<float>& all, size_t begin, size_t count) {
  const auto at = all.begin() + std::ptrdiff_t(begin);
  return {at, at + std::ptrdiff_t(count)};
}

}  // namespace

// Blocks of a card cut a row's slots at fixed places, parts of the CPU too.
TEST_CASE("decode attention of a row has the same bits alone and among others", "[devices]") {
  const std::vector<int32_t> lengths{300, 1, 257, 18};
  const HeadShape shape{4, 2, 24};
  constexpr size_t kWidth = 4 * 24;
  for (const DType dtype : kKvTypes)
    for (const DeviceChoice& choice : device_choices(2)) {
      Home together(dtype, shape, 640, 4);
      DecodeStep step{together, std::vector<policy::RowPlan>(4, roomy(640)), {}, {}, {}};
      std::vector<DecodeResult> alone;
      for (int32_t i = 0; i < 4; i++) {
        const int32_t live = lengths[size_t(i)], place = 3 - i;
        const std::vector<float> q = normals(uint32_t(100 + i), kWidth);
        Home home(dtype, shape, (live + 15) / 16 * 16);
        home.put_random(uint32_t(i), 0, live);
        alone.push_back(
            DecodeStep{home, {roomy(live)}, {segment_of(0, live, 0)}, q, {}}.run(choice));
        together.put_random(uint32_t(i), place, live);
        step.segments.push_back(segment_of(place, live, i));
        step.q.insert(step.q.end(), q.begin(), q.end());
      }
      const DecodeResult r = step.run(choice);
      for (size_t i = 0; i < 4; i++) {
        INFO(choice.backend << " " << choice.options.isa << " " << name(dtype) << " row " << i);
        CHECK(same_bits(part(r.out, i * kWidth, kWidth), alone[i].out));
        CHECK(same_bits(part(r.lse, i * 4, 4), alone[i].lse));
        const size_t slots = alone[i].logits.size() / 4, live = size_t(lengths[i]);
        for (size_t head = 0; head < 4; head++)
          CHECK(same_bits(part(r.logits, (i * 4 + head) * 640, live),
                          part(alone[i].logits, head * slots, live)));
      }
    }
}

TEST_CASE("decode attention without logits and lse has the same outputs", "[devices]") {
  const HeadShape shape{2, 2, 64};
  const std::vector<policy::RowPlan> plans{roomy(32, /*scored=*/false)};
  const std::vector<Segment> segments{segment_of(0, 20, 0)};
  for (const DeviceChoice& choice : device_choices()) {
    Home home(DType::bf16, shape, 32);
    home.put_random(1, 0, 20);
    const DecodeStep step{home, plans, segments, normals(1, 128), {}};
    Bench bench(choice);
    const Tensor q = bench.put(step.q, {1, 2, 64}), out = bench.make(DType::f32, {1, 2, 64});
    bench.ops().attend_decode(
        *bench.stream,
        {q, shape, segments, home.view_on(bench, plans), {}, step.scale, out, {}, {}});
    CHECK(same_bits(bench.get(out), step.run(choice).out));
  }
}

TEST_CASE("prompts of one step get what each gets alone, scored or not", "[devices]") {
  const HeadShape shape{4, 2, 16};
  const int32_t lengths[] = {40, 1, 33};
  for (const DeviceChoice& choice : device_choices(2)) {
    Home home(DType::bf16, shape, 48, 3);
    std::vector<PromptRun::Result> alone;
    std::vector<float> q;
    for (int32_t p = 0; p < 3; p++) {
      home.put_random(uint32_t(p), p, lengths[p]);
      Home own(DType::bf16, shape, 48);
      own.put_random(uint32_t(p), 0, lengths[p]);
      const PromptRun one{own, lengths[p], normals(uint32_t(p), size_t(lengths[p] * 64))};
      alone.push_back(one.run(choice, {lengths[p]}));
      q.insert(q.end(), one.q.begin(), one.q.end());
    }
    Bench bench(choice);
    const KvRuns first = home.row_on(bench);
    const size_t place_bytes = size_t(home.row(1).data - home.row(0).data);
    const Tensor sums = bench.put(std::vector<float>(160, 0.0f), {160});
    std::vector<PromptSegment> segments;
    for (int32_t p = 0, token = 0; p < 3; token += lengths[p], p++) {
      PromptSegment segment;
      segment.segment = {p, 0, lengths[p], token};
      segment.kv = first;
      segment.kv.data += size_t(p) * place_bytes;
      segment.length = segment.stats_stride = lengths[p];
      if (p == 2) {  // the others are not scored
        segment.sum = sums.as<float>();
        segment.last = sums.as<float>() + 80;
      }
      segments.push_back(segment);
    }
    const Tensor in = bench.put(q, {74, 4, 16}), out = bench.make(DType::f32, {74, 4, 16}),
                 lse = bench.make(DType::f32, {74, 4});
    bench.ops().attend_prompt(*bench.stream, {in, shape, segments, DType::bf16, 0.25f, out, lse});
    bench.ops().summarize_prompt(*bench.stream, {in, lse, shape, segments, DType::bf16, 0.25f});
    const auto outs = bench.get(out), lses = bench.get(lse), columns = bench.get(sums);
    size_t token = 0;
    for (size_t p = 0; p < 3; token += size_t(lengths[p]), p++) {
      INFO(choice.backend << " " << choice.options.isa << " prompt " << p);
      CHECK(same_bits(part(outs, token * 64, alone[p].out.size()), alone[p].out));
      CHECK(same_bits(part(lses, token * 4, alone[p].lse.size()), alone[p].lse));
    }
    CHECK(same_bits(part(columns, 0, 66), alone[2].columns.sum));
    CHECK(same_bits(part(columns, 80, 66), alone[2].columns.last));
  }
}

TEST_CASE("over several key blocks every query hands out exactly its heads", "[devices]") {
  const HeadShape shape{4, 2, 8};
  constexpr int32_t kLength = 300;
  Home home(DType::f32, shape, 304);
  home.put_random(1, 0, kLength);
  const PromptRun prompt{home, kLength, normals(2, kLength * 4 * 8, 2)};
  for (const DeviceChoice& choice : device_choices()) {
    const auto r = prompt.run(choice, {kLength});
    double sum = 0, last = 0;
    for (const float x : r.columns.sum) sum += double(x);
    for (const float x : r.columns.last) last += double(x);
    INFO(choice.backend << " " << choice.options.isa);
    // Logits are the same numbers in both passes but for the order of 8 products, below 30 times
    // 8 * 2^-24, and e to them is right to 2 ulp; sums are of up to 600 terms: 600 * 2^-24.
    CHECK(std::fabs(sum / (4.0 * kLength) - 1) < 5e-5);
    CHECK(std::fabs(last / 4 - 1) < 5e-5);
  }
}
