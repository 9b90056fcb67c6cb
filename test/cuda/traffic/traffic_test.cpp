// What kernels read and write beside the least that the operation can do with. Where a factor is
// not 1, the comment says what it is and why it stands.
#include <algorithm>
#include <numeric>

#include "runtime/backends/cuda/cuda_stream.hpp"
#include "runtime/base/aligned.hpp"
#include "test/cuda/traffic/counted.hpp"
#include "test/ops/attend_prompt_cases.hpp"
#include "test/ops/decode_step.hpp"
#include "test/support/cache_home.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

struct Decode {
  DType dtype;
  int32_t group, dim;
  policy::Positions positions = policy::Positions::original;
};

// Parts that a row is cut into: for two blocks on each of the emulated card's four multiprocessors,
// in multiples of 32 slots, from 64 to 256 each.
size_t splits_of(const HeadShape& shape, int32_t live) {
  const int32_t blocks = shape.kv_heads * ceil_div(shape.heads / shape.kv_heads, 8);
  const int32_t split = align_up(ceil_div(live, ceil_div(2 * 4, blocks)), 32);
  return size_t(ceil_div(live, std::clamp(split, 64, 256)));
}

// One row of `live` slots.
void check_decode(const Decode& c, int32_t live) {
  INFO(name(c.dtype) << " group " << c.group << " dim " << c.dim << " live " << live);
  const HeadShape shape{2 * c.group, 2, c.dim};
  const bool turned = c.positions == policy::Positions::cache;
  Bench bench(kDevice);
  Home home(c.dtype, shape, 544);
  home.put_random(1, 0, live);
  for (int32_t i = 0; i < 2 * live; i++)
    home.positions[size_t(i / live * home.slots() + i % live)] = i % live;
  std::vector<policy::RowPlan> plans{roomy(544)};
  plans[0].positions = c.positions;
  const std::vector<Segment> segments{segment_of(0, live, 0)};
  AttendDecodeArgs args;
  args.q = bench.put(normals(2, size_t(shape.heads * c.dim)), {1, shape.heads, c.dim});
  args.shape = shape;
  args.segments = segments;
  args.cache = home.view_on(bench, plans);
  if (turned) args.ranks = {c.dim, bench.put(rotary_table(544, c.dim), {544, c.dim / 2, 2})};
  args.out = bench.make(DType::f32, {1, shape.heads, c.dim});
  args.logits = bench.make(DType::f32, {1, shape.heads, 544});
  args.lse = bench.make(DType::f32, {1, shape.heads});
  Meter meter;
  const Traffic& kv = meter.of(args.cache.kv.data, 2 * args.cache.kv.head_bytes);
  const Traffic& q = meter.of(args.q);
  const Traffic &out = meter.of(args.out), &logits = meter.of(args.logits),
                &lse = meter.of(args.lse);
  // What a row takes beside its arguments begins with its parts: maximum, sum and output of each.
  const size_t splits = splits_of(shape, live),
               part_bytes = splits * size_t(shape.heads) * size_t(c.dim + 2) * sizeof(float);
  const size_t most = bench.ops().scratch_bytes({.shape = shape, .rows = 1, .slots = 544});
  CHECK(most >= part_bytes);
  auto& stream = static_cast<cuda::CudaStream&>(*bench.stream);
  const Traffic& parts = meter.of(stream.scratch(std::max(most, size_t{1} << 20)), part_bytes);
  bench.ops().attend_decode(*bench.stream, args);
  bench.stream->synchronize();

  // Each key and value once per KV head; a group of more than 8 heads does not fit in registers and
  // is attended 8 heads at a time.
  const auto passes = size_t(ceil_div(c.group, 8));
  check_once(kv.read, passes * 2 * size_t(live) * 2 * size_t(row_bytes(c.dtype, c.dim)));
  // Each block takes its heads' queries, and leaves its part to be put together.
  check_once(parts.written, part_bytes);
  CHECK(parts.read.moved == part_bytes);  // maxima are asked for by all that weigh with them
  CHECK(q.read.moved == splits * bytes_of(args.q));
  check_once(out.written, bytes_of(args.out));
  check_once(logits.written, size_t(shape.heads * live) * 4);
  check_once(lse.written, size_t(shape.heads) * 4);
  CHECK(kv.written.asked + out.read.asked + logits.read.asked == 0);
}

struct Prompt {
  DType dtype;
  int32_t group, dim, length;
  int32_t rows, keys;  // of a block's tile: queries in attention, keys in the column sums
};

void check_prompt(const Prompt& c) {
  INFO(name(c.dtype) << " group " << c.group << " dim " << c.dim << " length " << c.length);
  const HeadShape shape{2 * c.group, 2, c.dim};
  Bench bench(kDevice);
  Home home(c.dtype, shape, int32_t(align_up(c.length, kRunSlots)));
  home.put_random(1, 0, c.length);
  PromptSegment p;
  p.segment = {0, 0, c.length, 0};
  p.kv = home.row_on(bench);
  p.length = p.stats_stride = c.length;
  const Tensor sum = bench.put(std::vector<float>(size_t(2 * c.length)), {2, c.length});
  const Tensor last = bench.make(DType::f32, {2, c.length});
  p.sum = sum.as<float>(), p.last = last.as<float>();
  const Tensor q =
      bench.put(normals(2, size_t(c.length * shape.heads * c.dim)), {c.length, shape.heads, c.dim});
  const Tensor out = bench.make(DType::f32, q.shape);
  const Tensor lse = bench.make(DType::f32, {c.length, shape.heads});
  const auto row = size_t(row_bytes(c.dtype, c.dim));
  {
    Meter meter;
    const Traffic& kv = meter.of(p.kv.data, 2 * p.kv.head_bytes);
    const Traffic &queries = meter.of(q), &outs = meter.of(out), &sums = meter.of(lse);
    bench.ops().attend_prompt(*bench.stream, {q, shape, {&p, 1}, c.dtype, 0.1f, out, lse});
    bench.stream->synchronize();
    // Each tile of queries reads the keys and values that its last one sees: half of the tiles'
    // number times the least, for the whole prompt fits in no block. A GQA group's heads share
    // them.
    size_t seen = 0;
    for (int32_t first = 0; first < c.length * c.group; first += c.rows)
      seen += size_t(std::min(first + c.rows, c.length * c.group) - 1) / size_t(c.group) + 1;
    check_once(kv.read, 2 * seen * 2 * row);
    CHECK(queries.read.moved == bytes_of(q));
    check_once(outs.written, bytes_of(out));
    check_once(sums.written, bytes_of(lse));
  }
  Meter meter;
  const Traffic& kv = meter.of(p.kv.data, 2 * p.kv.head_bytes);
  const Traffic &queries = meter.of(q), &sums = meter.of(sum), &lasts = meter.of(last);
  bench.ops().summarize_prompt(*bench.stream, {q, lse, shape, {&p, 1}, c.dtype, 0.1f});
  bench.stream->synchronize();
  // Keys stay and queries pass by: those that see the first key of the block's.
  check_once(kv.read, 2 * size_t(c.length) * row);
  size_t passing = 0;
  for (int32_t key = 0; key < c.length; key += c.keys) passing += size_t(c.length - key);
  CHECK(queries.read.moved == passing * size_t(shape.heads * c.dim) * 4);
  check_once(sums.read, bytes_of(sum));
  check_once(sums.written, bytes_of(sum));
  check_once(lasts.written, bytes_of(last));
}

}  // namespace

TEST_CASE("decode attention reads each key and value once per KV head") {
  for (const DType dtype : kKvTypes)
    for (const int32_t group : {1, 4, 8, 9}) check_decode({dtype, group, 64}, 301);
  for (const int32_t dim : {24, 80, 96, 128, 256}) check_decode({DType::bf16, 2, dim}, 270);
  for (const DType dtype : kKvTypes) check_decode({dtype, 4, 64, policy::Positions::cache}, 130);
}

TEST_CASE("prompt attention reads keys once for a tile of queries, column sums once") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    check_prompt({dtype, 1, 128, 150, 64, 64});
    check_prompt({dtype, 4, 64, 70, 64, 64});
    check_prompt({dtype, 2, 256, 70, 64, 32});
  }
  check_prompt({DType::f32, 2, 64, 70, 16, 16});
  check_prompt({DType::f16, 2, 24, 70, 16, 16});
}

TEST_CASE("operations on activations read and write each number once") {
  Bench bench(kDevice);
  const int64_t t = 3, h = 320;
  const Tensor in = bench.put(random_floats(t * h, 1), {t, h});
  const Tensor gain = bench.put(random_floats(h, 2), {h}), out = bench.make(DType::f32, {t, h});
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    Meter meter;
    const Traffic &from = meter.of(in), &gains = meter.of(gain), &to = meter.of(out);
    bench.ops().normalize(*bench.stream, {kind, in, gain, gain, 1e-5f, out});
    bench.stream->synchronize();
    CHECK(from.read.moved == bytes_of(in));  // asked for once for each sum, then to be scaled
    CHECK(gains.read.moved == size_t(t) * bytes_of(gain));
    check_once(to.written, bytes_of(out));
  }
  {
    const Tensor gated = bench.make(DType::f32, {t, h / 2});
    Meter meter;
    const Traffic &from = meter.of(in), &to = meter.of(gated);
    bench.ops().gate(*bench.stream, {Activation::silu, in, gated});
    bench.stream->synchronize();
    check_once(from.read, bytes_of(in));
    check_once(to.written, bytes_of(gated));
  }
  {
    const Tensor positions = bench.put(std::vector<int32_t>{7, 0, 41}, {3});
    const Tensor frequencies = bench.put(random_floats(40, 3), {40});
    const Tensor table = bench.make(DType::f32, {3, 40, 2});
    Meter meter;
    const Traffic &from = meter.of(positions), &by = meter.of(frequencies), &to = meter.of(table);
    bench.ops().rotary_table(*bench.stream, {positions, frequencies, table});
    bench.stream->synchronize();
    CHECK(from.read.moved == bytes_of(positions));  // all in one block
    CHECK(by.read.moved == bytes_of(frequencies));
    check_once(to.written, bytes_of(table));
  }
  {
    const Tensor rows = bench.put(std::vector<int32_t>{2, 0}, {2});
    const Tensor picked = bench.make(DType::f32, {2, h});
    Meter meter;
    const Traffic &from = meter.of(in), &to = meter.of(picked);
    bench.ops().gather(*bench.stream, {rows, in, picked});
    bench.stream->synchronize();
    check_once(from.read, bytes_of(picked));
    check_once(to.written, bytes_of(picked));
  }
  {
    const Tensor best = bench.make(DType::i32, {t}), lse = bench.make(DType::f32, {t});
    Meter meter;
    const Traffic &from = meter.of(in), &to = meter.of(best);
    bench.ops().summarize_logits(*bench.stream, {in, best, lse});
    bench.stream->synchronize();
    CHECK(from.read.moved == bytes_of(in));  // asked for by the maximum, then by the sum
    check_once(to.written, bytes_of(best));
  }
}

TEST_CASE("looking up tokens reads their rows once") {
  for (const DType format : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_k}) {
    INFO(name(format));
    Bench bench(kDevice);
    const int64_t n = 16, k = 512;
    const FileWeights file = random_weights(format, n, k, 1);
    const size_t panel = bench.ops().panel_bytes(format, k), row = file.bytes.size() / n;
    std::vector<const std::byte*> rows;
    for (int64_t r = 0; r < n; r++) rows.push_back(file.bytes.data() + size_t(r) * row);
    std::vector<std::byte> packed(panel);
    bench.ops().pack_panel(format, k, rows, packed.data());
    EmbedArgs args;
    args.indices = bench.put(std::vector<int32_t>{3, 15, 3}, {3});
    args.table = {bench.put_bytes(packed.data(), panel), format, Activations::f32, n, k, panel};
    args.out = bench.make(DType::f32, {3, k});
    Meter meter;
    const Traffic &table = meter.of(args.table.panels, panel), &out = meter.of(args.out);
    bench.ops().embed(*bench.stream, args);
    bench.stream->synchronize();
    CHECK(table.read.moved == 3 * row);
    check_once(out.written, bytes_of(args.out));
  }
}

TEST_CASE("splitting reads the projection and writes each head once") {
  Bench bench(kDevice);
  const HeadShape shape{4, 2, 64};
  const int32_t t = 21;
  Home home(DType::f16, shape, 32);
  PromptSegment p;
  p.segment = {0, 0, t, 0};
  p.kv = home.row_on(bench);
  p.length = t;
  const Tensor qkv = bench.put(normals(1, size_t(t) * 8 * 64), {t, 8 * 64});
  const Rotary rotary{64, bench.put(rotary_table(t, 64), {t, 32, 2})};
  const Tensor q = bench.make(DType::f32, {t, 4, 64});
  Meter meter;
  const Traffic &from = meter.of(qkv), &kv = meter.of(p.kv.data, 2 * p.kv.head_bytes),
                &to = meter.of(q);
  bench.ops().split_prompt(*bench.stream, {qkv, rotary, shape, {&p, 1}, DType::f16, q});
  bench.stream->synchronize();
  CHECK(from.read.moved == bytes_of(qkv));  // what turns is asked for by both of its pair
  check_once(kv.written, size_t(t) * 2 * 2 * 64 * 2);
  check_once(to.written, bytes_of(q));
}

TEST_CASE("an evicting step reads the logits once and moves two rows") {
  Bench bench(kDevice);
  CacheHome home({DType::f16, 64}, 1, 2, 40);
  home.plans[0] = {{0, 20, 20}, policy::Id::h2o, policy::Positions::original, true};
  const Segment segment{0, 57, 1, 0};
  const HeadShape shape{4, 2, 64};
  home.on_device(bench, [&](const CacheView& view) {
    std::vector<int32_t> positions(size_t(2 * view.slots));
    std::iota(positions.begin(), positions.end(), 0);
    CacheView v = view;
    v.position = bench.put(positions, {2, view.slots}).as<int32_t>();
    v.score = bench.put(random_floats(2 * view.slots, 1), {2, view.slots}).as<float>();
    const Tensor logits = bench.put(random_floats(4 * v.slots, 2), {1, 4, v.slots});
    const Tensor lse = bench.put(std::vector<float>(4, 5), {1, 4});
    const auto live = size_t(41);
    {
      Meter meter;
      const Traffic& from = meter.of(logits);
      const Traffic& score = meter.of(v.score, size_t(2 * v.slots) * 4);
      bench.ops().settle(*bench.stream, {logits, lse, shape, {&segment, 1}, v});
      bench.stream->synchronize();
      check_once(from.read, 4 * live * 4);
      CHECK(score.read.moved <= 2 * live * 4);
      check_once(score.written, 2 * live * 4);
    }
    Meter meter;
    const Traffic& kv = meter.of(v.kv.data, 2 * v.kv.head_bytes);
    bench.ops().store_decode(*bench.stream, {{&segment, 1}, v, v});
    bench.stream->synchronize();
    CHECK(kv.read.asked == kv.written.asked);
    CHECK(kv.read.moved <=
          size_t(2) * 2 * 2 * 64 * 2);  // a head whose leaving row is the victim: one
  });
}

TEST_CASE("what stays of a prompt is copied once") {
  Bench bench(kDevice);
  CacheHome home({DType::bf16, 64}, 1, 2, 40);
  home.plans[0] = {{0, 20, 20}, policy::Id::h2o, policy::Positions::original, true};
  const int32_t length = 100;
  Runs runs({DType::bf16, 64}, 2, length);
  StorePromptArgs args;
  args.prompt.segment = {0, 0, length, 0};
  args.prompt.length = args.prompt.stats_stride = length;
  args.shape = {4, 2, 64};
  args.prompt.kv = runs.on_device(bench);
  const Tensor sum = bench.put(random_floats(2 * length, 1), {2, length});
  const Tensor last = bench.put(random_floats(2 * length, 2), {2, length});
  args.prompt.sum = sum.as<float>(), args.prompt.last = last.as<float>();
  home.on_device(bench, [&](const CacheView& view) {
    args.to = view;
    Meter meter;
    const Traffic &from = meter.of(args.prompt.kv.data, 2 * args.prompt.kv.head_bytes),
                  &to = meter.of(view.kv.data, 2 * view.kv.head_bytes), &sums = meter.of(sum);
    bench.ops().store_prompt(*bench.stream, args);
    bench.stream->synchronize();
    const size_t stays = size_t(2) * 40 * 2 * 64 * 2;
    check_once(from.read, stays);
    check_once(to.written, stays);
    // A block finds a KV head's threshold bit by bit, 34 times over sums that stay beside it.
    CHECK(sums.read.moved == bytes_of(sum));
  });
}
