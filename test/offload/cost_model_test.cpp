// The model of costs against numbers worked out by hand, and what must hold of it whatever the
// rates are.
#include <catch2/catch.hpp>

#include "offload/cost_model.hpp"
#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"

using namespace hydrant;

namespace {

// One block and a head: six matrices of 32 x 32 and one of 64 x 32, all f32, in panels of 2 KiB.
struct Small {
  ModelSpec spec;
  WeightPlan plan;

  explicit Small(int layers = 1) {
    spec.layers = layers;
    spec.hidden = spec.embedding = 32;
    spec.vocab = 64;
    spec.block.heads = spec.block.kv_heads = 1;
    spec.block.head_dim = spec.block.ffn = 32;
    for (int stage = 1; stage <= layers; stage++)
      for (const Matrix role :
           {Matrix::q, Matrix::k, Matrix::v, Matrix::out, Matrix::up, Matrix::down})
        add(stage, role, 32);
    add(layers + 1, Matrix::head, 64);
  }
  void add(int stage, Matrix role, int64_t n) {
    MatrixPlan& m = plan.matrices.emplace_back();
    m.source.stage = stage;
    m.source.role = role;
    m.source.n = n;
    m.source.k = 32;
    m.weight = {nullptr, DType::f32, Activations::f32, n, 32, 2048};
    plan.bytes += size_t(n) / 16 * 2048;
  }
};

Curve flat(double y) { return {{{1, y}}, Curve::Beyond::level}; }

// A nanosecond for each weight and row, and for each component and pair; microseconds for calls.
MachineRates simple_rates() {
  MachineRates r;
  r.threads = 2;
  r.cores = 1000;  // that lanes share cores and memory is looked at by a case of its own
  r.memory = 1e15;
  r.copy = flat(1e9);
  r.disk_read = {flat(1e-4), {{{1, 1e-8}, {2, 6e-9}}, Curve::Beyond::level}};
  r.file_read = r.disk_read;
  r.disk_write = {flat(1e-4), flat(1e-8)};
  r.fork_join = 1e-6;
  r.block = flat(6e-6);
  r.logits = {3e-6, 0};
  ProductRate& product = r.products.emplace_back();
  product.weight = {{{1, 1e-9}, {2, 2e-9}}, Curve::Beyond::straight};
  product.call = flat(2e-6);
  AttentionRate& attention = r.attention.emplace_back();
  attention.decode = attention.prompt = flat(1e-9);
  attention.scored = attention.columns = flat(5e-10);
  r.packing.push_back({DType::f32, 1e-8});
  return r;
}

constexpr double kMatrix = 32 * 32 * 1e-9;  // a row through one of them
constexpr double kBlockCalls = 4 * 2e-6;    // q, k and v are one
constexpr double kBlockOperations = 6e-6;
constexpr double kBlock = 6 * kMatrix + kBlockCalls + kBlockOperations;
constexpr double kHead = 2 * kMatrix + 2e-6 + 3e-6;
constexpr double kBlockBytes = 6 * 2 * 2048, kHeadBytes = 4 * 2048;

struct Case {
  Small model;
  MachineRates rates = simple_rates();
  WeightOffload weights;
  std::optional<WeightLayout> layout;
  CostSetup setup;

  explicit Case(const Shares& shares = {}, int layers = 1) : model(layers) {
    weights.shares = shares;
    layout.emplace(model.plan, model.spec, shares);
    setup.spec = &model.spec;
    setup.weights = &*layout;
    setup.weight_options = weights;
    setup.rows_per_group = 4;
    setup.threads = 2;
  }
  Workload work(int64_t rows, int32_t prompt, int32_t output,
                policy::RowPlan plan = {{100, 0, 0}}) {
    return {rows, prompt, output, std::vector<policy::RowPlan>(size_t(model.spec.layers), plan)};
  }
  LaneSeconds step(const CostModel::Load& load, policy::RowPlan plan = {{100, 0, 0}}) {
    setup.weights = &*layout;
    return CostModel(rates, setup).step(load, work(1, 1, 1, plan)).lanes;
  }
};

CostModel::Load one_row(int32_t position) { return {{{0, 1, position}}, {}}; }

}  // namespace

TEST_CASE("a curve is straight between its points") {
  const Curve c{{{1, 10}, {4, 40}, {8, 60}}, Curve::Beyond::straight};
  CHECK(c.at(0.5) == 10);
  CHECK(c.at(1) == 10);
  CHECK(c.at(2) == Approx(20));
  CHECK(c.at(6) == Approx(50));
  CHECK(c.at(16) == Approx(100));
  CHECK(Curve{c.points, Curve::Beyond::level}.at(16) == 60);
}

TEST_CASE("a decode step is the sum of its products, its attention and its small operations") {
  Case c;
  const LaneSeconds s = c.step(one_row(9));  // reads ten slots
  CHECK(s.products == Approx(8 * kMatrix + kBlockCalls + 2e-6));
  CHECK(s.operations == Approx(kBlockOperations + 3e-6));
  CHECK(s.attention == Approx(10 * 32 * 1e-9));
  CHECK(s.scoring == 0);
  CHECK(s.compute() == Approx(kBlock + kHead + 320e-9));
  CHECK(s.seconds == Approx(s.compute()));
  CHECK(s.link + s.disk + s.waiting == 0);

  // Twenty slots are full at position 50: twenty, and the landing row; and it is scored.
  const LaneSeconds evicting = c.step(one_row(50), {{0, 10, 10}, policy::Id::h2o, {}, true});
  CHECK(evicting.attention == Approx(21 * 32 * 1e-9));
  CHECK(evicting.scoring == Approx(21 * 32 * 5e-10));
}

TEST_CASE("rows of a group share a pass, groups do not") {
  Case c;
  const CostModel::Load six{{{0, 6, 9}}, {}};
  c.setup.groups = 2;  // four and two
  CHECK(c.step(six).products == Approx(6 * 8 * kMatrix + 2 * (kBlockCalls + 2e-6)));
  CHECK(c.step(six).attention == Approx(6 * 320e-9));
}

TEST_CASE("a prompt goes through in pieces, its head once") {
  Case c;
  c.setup.prefill_chunk = 4;
  const CostModel::Load load{{}, {0, 1, 5}};  // four and one
  const LaneSeconds s = c.step(load);
  CHECK(s.products == Approx(5 * 6 * kMatrix + 2 * kBlockCalls + 2 * kMatrix + 2e-6));
  CHECK(s.attention == Approx(15e-9));
  CHECK(s.operations == Approx(2 * kBlockOperations + 3e-6));
  CHECK(c.step(load, {{0, 1, 1}, policy::Id::h2o, {}, true}).scoring == Approx(7.5e-9));
}

TEST_CASE("streamed weights take the longest lane when lanes overlap, and all of them otherwise") {
  Case host({0, 100, 0});
  host.setup.weight_options.link = 1e8;
  const double link = (kBlockBytes + kHeadBytes) / 1e8, compute = kBlock + kHead + 320e-9;
  LaneSeconds s = host.step(one_row(9));
  CHECK(s.link == Approx(link));
  CHECK(s.seconds == Approx(link));
  CHECK(std::string(s.bound()) == "link");
  host.setup.weight_options.overlap = false;
  CHECK(host.step(one_row(9)).seconds == Approx(link + compute));
  // A link that is faster than copies does not make them faster.
  host.setup.weight_options.link = 1e12;
  CHECK(host.step(one_row(9)).link == Approx(link / 10));

  Case disk({0, 0, 100});
  const double bytes = kBlockBytes + kHeadBytes;
  // The block's matrices are one request, the head's is another. 100 us each beside the bytes; with
  // two under way and nothing to pack, 6 ns a byte.
  disk.rates.packing.front().byte = 0;
  CHECK(disk.step(one_row(9)).disk == Approx(2e-4 + bytes * 6e-9));
  disk.setup.weight_options.disk_lanes = 1;
  CHECK(disk.step(one_row(9)).disk == Approx(2e-4 + bytes * 1e-8));
  // Where a lane is at the disk for less than 1.6 % of the time, hardly ever do two reads meet.
  disk.setup.weight_options.disk_lanes = 2;
  disk.rates.packing.front().byte = 1e-6;
  CHECK(disk.step(one_row(9)).disk ==
        Approx((2e-4 + bytes * (1e-8 + 1e-6)) / 2).epsilon(0.016 * 0.016));
  // With a disk that serves one at a time and as long to pack: a second lane finds the first at the
  // disk half of the time, so two take 2.5 reads' time for two; and many leave it no rest.
  const Curve alone = disk.rates.file_read.byte, request = disk.rates.file_read.request;
  disk.rates.file_read.byte.points = {{1, 1e-8}};
  disk.rates.file_read.request.points = {{1, 0}};
  disk.rates.packing.front().byte = 1e-8;
  CHECK(disk.step(one_row(9)).disk == Approx(bytes * 1.25e-8));
  disk.setup.weight_options.disk_lanes = 16;
  CHECK(disk.step(one_row(9)).disk == Approx(bytes * 1e-8).epsilon(1e-6));
  disk.setup.weight_options.disk_lanes = 2;
  disk.rates.file_read.byte = alone;
  disk.rates.file_read.request = request;
  // A little of it goes on while the other lane reads.
  disk.rates.packing.front().byte = 2e-9;
  const double some = disk.step(one_row(9)).disk;
  CHECK(some > 2e-4 + bytes * 6e-9);
  CHECK(some < 2e-4 + bytes * 1e-8);
  disk.setup.weight_options.overlap = false;
  CHECK(disk.step(one_row(9)).seconds ==
        Approx(2e-4 + bytes * (1e-8 + 2e-9) + bytes / 1e9 + compute));  // read, pack, copy, compute
}

TEST_CASE("rows of a cache on disk are a request each, and share the disk with weights") {
  Case c({0, 0, 100});
  KvShape kv{1, 4, 1, 32, {100}, DType::bf16};
  const auto device = open_device("cpu", {1, ""});
  const CacheLayout layout(kv, {0, 0, 100}, /*staged=*/false, device->ops());
  c.setup.caches = &layout;
  c.setup.cache_options.disk_requests = 2;
  c.rates.disk_write = {flat(0), flat(0)};
  const CostModel::Load three{{{0, 3, 9}}, {}};
  const double blocks = 3 * double(layout.block_bytes(0));
  const LaneSeconds s = c.step(three);
  CHECK(s.cache_disk == Approx(3e-4 + blocks * 6e-9));  // no more than two at a time
  CHECK(s.seconds >= s.disk + s.cache_disk);
  // A full cache writes, for each token, a sixteenth of the run that it ends in.
  c.rates.disk_read = {flat(0), flat(0)};
  c.rates.disk_write = {flat(1e-4), flat(1e-8)};
  const double tokens = 3 * double(layout.run_bytes()) / 16;
  CHECK(c.step(three).cache_disk == Approx(tokens / 4096 * 1e-4 + tokens * 1e-8));
}

TEST_CASE("rows of a table in the file are looked up one behind another") {
  Case c({0, 0, 100});
  MatrixPlan table = c.model.plan.matrices.back();
  table.source.stage = 0;
  table.source.role = Matrix::tokens;
  c.model.plan.matrices.insert(c.model.plan.matrices.begin(), table);
  c.layout.emplace(c.model.plan, c.model.spec, c.weights.shares);
  const CostModel::Load load{{{0, 2, 9}}, {2, 1, 5}};  // two tokens and a prompt of five
  const double row = 1e-4 + (32 * 4 + 4096) * 1e-8;
  CHECK(c.step(load).look_up > 7 * row);  // behind reads of weights
  c.setup.weight_options.overlap = false;
  CHECK(c.step(load).look_up == Approx(7 * row));
}

TEST_CASE("stages wait for their slot") {
  // Two slots and stages of 0, 246, 246 and 82 us of link, and some 20 us of compute each: the lane
  // never waits. When computing takes longer than the link it is the other way round.
  Case c({0, 100, 0}, 2);
  c.setup.weight_options.link = 1e8;
  const double link = (2 * kBlockBytes + kHeadBytes) / 1e8;
  LaneSeconds s = c.step(one_row(9));
  CHECK(s.seconds == Approx(link));
  CHECK(s.waiting == Approx(link - s.compute()));
  c.setup.weight_options.link = 0;
  c.rates.products.front().call = flat(1e-3);
  s = c.step(one_row(9));
  CHECK(s.seconds == Approx(s.compute()));
  // A head that takes long to move and a block that takes long to compute, with a ring of two: the
  // head fills while the last block computes, and the first blocks wait behind it.
  Case uneven({0, 100, 0}, 2);
  uneven.model.plan.matrices.back().weight.n = 64 * 64;
  uneven.layout.emplace(uneven.model.plan, uneven.model.spec, uneven.weights.shares);
  uneven.setup.weight_options.link = 1e8;
  uneven.rates.products.front().call = flat(1e-4);
  s = uneven.step(one_row(9));
  CHECK(s.seconds > std::max(s.link, s.compute()) * (1 - 1e-9));
}

TEST_CASE("hidden states that wait on the host pass over the link, both ways, between stages") {
  Case c({}, 3);
  c.setup.rows_per_group = 1;
  c.setup.groups = 4;
  c.setup.weight_options.link = 1e8;
  c.setup.hidden = {.shares = {50, 50, 0}, .slots = 2};
  const CostModel::Load four{{{0, 4, 9}}, {}};
  CHECK(c.step(four).link == 0);  // two pieces keep their two slots
  c.setup.hidden.shares = {25, 75, 0};
  const double bytes = 3 * 32 * 4 * 3;  // three rows of 32 floats, between four stages
  CHECK(c.step(four).link == Approx(bytes / 1e8));
  CHECK(c.step(four).link_down == Approx(bytes / 1e8));
  c.setup.groups = 1;
  c.setup.hidden.shares = {0, 100, 0};
  c.setup.prefill_chunk = 10;
  // A prompt of 35 tokens in four pieces.
  CHECK(c.step({{}, {0, 1, 35}}).link_down == Approx(35 * 32 * 4 * 3 / 1e8));
}

TEST_CASE("a bus has rates of its own each way, and others while both are busy") {
  Case c({}, 3);
  c.setup.rows_per_group = 1;
  c.setup.groups = 4;
  c.setup.host_is_device = false;
  c.setup.hidden = {.shares = {25, 75, 0}, .slots = 2};
  const CostModel::Load four{{{0, 4, 9}}, {}};
  const double bytes = 3 * 32 * 4 * 3;  // three rows of 32 floats, between four stages
  CHECK(c.step(four).link_both == 0);   // no bus was measured
  // Alone 4e6 up and 2e6 down; together 3e6 and 1e6: up is done after bytes / 3e6, when a third of
  // what goes down has gone, and the rest goes alone.
  c.rates.bus = {flat(4e6), flat(2e6), flat(3e6), flat(1e6)};
  LaneSeconds s = c.step(four);
  CHECK(s.link == Approx(bytes / 4e6));
  CHECK(s.link_down == Approx(bytes / 2e6));
  CHECK(s.link_both == Approx(bytes / 3e6 + bytes * 2 / 3 / 2e6));
  CHECK(s.seconds == Approx(s.link_both));
  CHECK(std::string(s.bound()) == "link both ways");
  // Ways that do not disturb each other take as long as the longer one.
  c.rates.bus = {flat(4e6), flat(2e6), flat(4e6), flat(2e6)};
  s = c.step(four);
  CHECK(s.link_both == Approx(s.link_down));
  // Copies of weights are large, and what is measured of large ones holds for them.
  Case weights({0, 100, 0});
  weights.setup.host_is_device = false;
  const Curve by_size{{{1, 1e6}, {kHeadBytes, 1e8}, {kBlockBytes, 3e8}}, Curve::Beyond::level};
  weights.rates.bus = {by_size, by_size, by_size, by_size};
  s = weights.step(one_row(9));
  CHECK(s.link == Approx(kBlockBytes / 3e8 + kHeadBytes / 1e8));
  CHECK(s.link_both == 0);  // nothing goes the other way
  weights.setup.weight_options.link = 5e7;
  CHECK(weights.step(one_row(9)).link == Approx((kBlockBytes + kHeadBytes) / 5e7));
}

TEST_CASE("lanes of a device in host memory share its cores and its memory") {
  Case c({0, 100, 0});
  c.rates.cores = 1;
  const LaneSeconds s = c.step(one_row(9));
  const double bytes = kBlockBytes + kHeadBytes;
  CHECK(s.cores == Approx(2 * s.compute() + bytes / 1e9));
  CHECK(s.seconds == Approx(s.cores));
  c.rates.memory = 1e6;
  const double keys_and_values = 10 * 32 * 2 * 2;
  CHECK(c.step(one_row(9)).bus == Approx((bytes + 2 * bytes + keys_and_values) / 1e6));
  c.setup.host_is_device = false;
  CHECK(c.step(one_row(9)).cores + c.step(one_row(9)).bus == 0);
}

TEST_CASE("a run's steps are those of the loop") {
  Case c;
  c.setup.rows_per_group = 2;
  // Two places for three rows of two tokens: both prompts, both decode, the third, it decodes.
  const Prediction p = CostModel(c.rates, c.setup).run(c.work(3, 5, 2));
  CHECK(p.steps == 4);
  CHECK(p.generated == 6);
  CHECK(p.decode.attention == Approx(3 * 6 * 32e-9));  // a token at position 5 reads six slots
  CHECK(p.prefill.attention == Approx(3 * 15e-9));
  CHECK(p.tokens_per_second() == Approx(6 / p.seconds()));
  // One prompt a step: the second is admitted while the first decodes.
  c.setup.prefill_tokens = 5;
  CHECK(CostModel(c.rates, c.setup).run(c.work(2, 5, 3)).steps == 4);
  // The cache grows. Of eight stretches each is taken at its middle, rounded down by half a slot.
  const Prediction longer = CostModel(c.rates, c.setup).run(c.work(1, 5, 81));
  CHECK(longer.steps == 81);
  CHECK(longer.decode.attention == Approx(32e-9 * (6 + 85) * 80 / 2).epsilon(0.02));
}

TEST_CASE("what moves more is never predicted to be faster") {
  for (const double link : {0.0, 1e8}) {
    double before = 0;
    for (int device = 100; device >= 0; device -= 10)
      for (const bool disk : {false, true}) {
        const double rest = 100 - device;
        Case c(disk ? Shares{double(device), 0, rest} : Shares{double(device), rest, 0}, 3);
        c.setup.weight_options.link = link;
        const double seconds = CostModel(c.rates, c.setup).run(c.work(4, 8, 8)).seconds();
        CAPTURE(device, disk, link);
        CHECK(seconds > before * (1 - 1e-9));
        if (!disk) before = seconds;
      }
  }
}

TEST_CASE("what a profile lacks is named") {
  Case c;
  c.rates.products.clear();
  try {
    c.step(one_row(1));
    FAIL("a run whose products were not measured");
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::bad_config);
    CHECK_THAT(e.what(), Catch::Contains("products of f32 weights"));
  }
}
