// One step of decode attention over a few rows.
#pragma once
#include <vector>

#include "test/ops/attend_cases.hpp"

namespace hydrant::test {

// A row that has `live` live slots in its step: nothing evicted yet.
inline Segment segment_of(int32_t place, int32_t live, int32_t token) {
  return {place, live - 1, 1, token};
}
inline policy::RowPlan roomy(int32_t slots, bool scored = true) {
  policy::RowPlan plan;
  plan.slots = {0, 0, slots - 1};
  plan.scored = scored;
  return plan;
}

struct DecodeResult {
  std::vector<float> out, logits, lse;
  size_t scratch_bytes = 0;
};

struct DecodeStep {
  Home& home;
  std::vector<policy::RowPlan> plans;
  std::vector<Segment> segments;
  std::vector<float> q;      // [t][heads][d]
  std::vector<float> table;  // by rank
  int32_t dims = 0;
  float scale = 0.25f;

  // Through the operations of a device.
  DecodeResult run(const DeviceChoice& choice) const {
    const HeadShape shape = home.shape();
    const auto t = int64_t(q.size()) / (shape.heads * shape.head_dim);
    Bench bench(choice);
    const Tensor in = bench.put(q, {t, shape.heads, shape.head_dim});
    const Tensor out = bench.make(DType::f32, in.shape);
    const Tensor logits = bench.make(DType::f32, {t, shape.heads, home.slots()});
    const Tensor lse = bench.make(DType::f32, {t, shape.heads});
    Rotary ranks;
    if (dims > 0) ranks = {dims, bench.put(table, {int64_t(table.size()) / dims, dims / 2, 2})};
    bench.ops().attend_decode(*bench.stream, {in, shape, segments, home.view_on(bench, plans),
                                              ranks, scale, out, logits, lse});
    return {bench.get(out), bench.get(logits), bench.get(lse)};
  }
  DecodeResult run(cpu::Isa isa, int threads) const {
    const HeadShape shape = home.shape();
    const auto t = int64_t(q.size()) / (shape.heads * shape.head_dim);
    DecodeResult r;
    r.out.assign(q.size(), -1);
    r.logits.assign(size_t(t * shape.heads * home.slots()), 0);
    r.lse.assign(size_t(t * shape.heads), -1);
    AttendDecodeArgs args;
    args.q = {q.data(), DType::f32, {t, shape.heads, shape.head_dim}};
    args.shape = shape;
    args.segments = segments;
    args.cache = home.view(plans);
    if (dims > 0)
      args.ranks = {dims, {table.data(), DType::f32, {int64_t(table.size()) / dims, dims / 2, 2}}};
    args.scale = scale;
    args.out = {r.out.data(), DType::f32, {t, shape.heads, shape.head_dim}};
    args.logits = {r.logits.data(), DType::f32, {t, shape.heads, home.slots()}};
    args.lse = {r.lse.data(), DType::f32, {t, shape.heads}};
    cpu::ThreadPool pool(threads);
    cpu::AttendScratch scratch;
    cpu::attend_decode(pool, isa, args, scratch);
    r.scratch_bytes = scratch.bytes();
    return r;
  }
  std::vector<double> query(const Segment& s, int32_t head) const {
    const auto d = home.shape().head_dim;
    const auto at = q.begin() + (s.token * home.shape().heads + head) * d;
    return {at, at + d};
  }
};

}  // namespace hydrant::test
