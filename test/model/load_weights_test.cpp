#include "runtime/model/load_weights.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include "runtime/base/log.hpp"
#include "runtime/model/gguf.hpp"
#include "runtime/model/safetensors.hpp"
#include "test/support/checkpoint_writer.hpp"
#include "test/support/refusal.hpp"
#include "test/support/row_device.hpp"
#include "test/support/temporary_folder.hpp"

namespace hydrant::test {
namespace {

using Catch::Matchers::Contains;

ModelSpec one_block() {
  ModelSpec spec;
  spec.layers = 1;
  return spec;
}

MatrixSource matrix(Matrix role, std::string name, int64_t n, int64_t k, int stage = 1) {
  MatrixSource m;
  m.stage = stage;
  m.names = {std::move(name)};
  m.role = role;
  m.n = m.tensor_rows = n;
  m.k = k;
  return m;
}
VectorSource vector(Vector role, std::string name, int64_t begin, int64_t size, int64_t whole) {
  VectorSource v;
  v.stage = 1;
  v.names = {std::move(name)};
  v.role = role;
  v.begin = begin;
  v.size = v.tensor_size = size;
  v.vector_size = whole;
  return v;
}

// Loads onto a device that keeps rows as they stand.
class Loader {
 public:
  Checkpoint checkpoint;
  WeightSources sources;
  ModelSpec spec = one_block();
  RowDevice device{3};
  bool exact = false;
  LoadProgress progress;

  WeightPlan plan() { return plan_weights(checkpoint, spec, sources, device.ops(), exact); }
  ModelWeights load() { return load_weights(checkpoint, spec, plan(), device, progress); }
  std::string refused() {
    return refusal(Fault::bad_file, [this] { load(); });
  }
  void store(const TemporaryFolder& folder, const std::vector<RawTensor>& tensors) {
    folder.write("model.safetensors", safetensors_bytes(tensors));
    checkpoint = open_safetensors(folder.path());
  }
};

std::vector<float> counting(int64_t count) {
  std::vector<float> values(size_t(count), 0.0f);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}
float first_of_row(const Weight& w, int64_t row) {
  float value;
  std::memcpy(&value, row_of(w, row), sizeof value);
  return value;
}

TEST_CASE("loading: rows of a matrix of many chunks, as they stand and in another order") {
  const TemporaryFolder folder;
  const int64_t n = 3001, k = 256;  // 3 MB, the last panel not full
  Loader loader;
  loader.store(folder, {f32_tensor("w", {n, k}, counting(n * k))});
  MatrixSource listed = matrix(Matrix::v, "w", 1500, k);
  listed.tensor_rows = n;
  RowOrder& order = listed.order;
  if (GENERATE(true, false)) {  // halves of 10 rows that take turns, in one sweep over the tensor
    order.outer_step = 20;
    order.middle = 2;
    order.inner = 10;
    order.inner_step = 2;
  } else {  // runs of 5 with holes
    order.offset = 1;
    order.outer_step = 10;
    order.inner = 5;
  }
  loader.sources.matrices = {matrix(Matrix::q, "w", n, k), listed};
  uint64_t told = 0, total = 0;
  loader.progress = [&](uint64_t done, uint64_t all) {
    CHECK(done >= told);
    told = done;
    total = all;
  };
  const ModelWeights weights = loader.load();
  CHECK(loader.device.allocations == 1);
  CHECK(total == uint64_t(n + 1500) * k * 4);
  CHECK(told == total);
  const LayerWeights& stage = weights.stage(1);
  const Weight &q = stage[Matrix::q], &v = stage[Matrix::v];
  CHECK(q.n == n);
  CHECK(q.k == k);
  CHECK(q.format == DType::f32);
  bool equal = true;
  for (int64_t i = 0; i < n; i++) equal = equal && first_of_row(q, i) == float(i * k);
  for (int64_t i = 0; i < 1500; i++) equal = equal && first_of_row(v, i) == float(order(i) * k);
  CHECK(equal);
  CHECK_FALSE(stage[Matrix::k]);
  CHECK_FALSE(weights.stage(0)[Matrix::tokens]);
}

TEST_CASE("loading: vectors become f32, are put together and may be all ones") {
  const TemporaryFolder folder;
  Loader loader;
  loader.store(folder, {f32_tensor("a", {2}, {1, 2}),
                        {"b", "F16", {2}, bytes_of<uint16_t>({0x3800, 0xc000})},        // 0.5, -2
                        {"c", "BF16", {3}, bytes_of<uint16_t>({0x3f80, 0x4040, 0})}});  // 1, 3, 0
  VectorSource listed = vector(Vector::qkv_bias, "c", 4, 2, 6);
  listed.tensor_size = 3;
  listed.order = {.offset = 1, .outer_step = -1};
  VectorSource ones = vector(Vector::norm1_gain, "", 0, 3, 3);
  ones.names.clear();
  loader.sources.vectors = {vector(Vector::qkv_bias, "a", 0, 2, 6),
                            vector(Vector::qkv_bias, "b", 2, 2, 6), listed, ones};
  const ModelWeights weights = loader.load();
  const ConstTensor& bias = weights.stage(1)[Vector::qkv_bias];
  CHECK(bias.shape == Shape{6});
  CHECK(std::vector<float>(bias.as<float>(), bias.as<float>() + 6) ==
        std::vector<float>{1, 2, 0.5f, -2, 3, 1});
  const ConstTensor& gain = weights.stage(1)[Vector::norm1_gain];
  CHECK(std::vector<float>(gain.as<float>(), gain.as<float>() + 3) == std::vector<float>{1, 1, 1});
}

TEST_CASE("loading: a tied head is the token table") {
  const TemporaryFolder folder;
  Loader loader;
  loader.store(folder, {f32_tensor("other", {4, 2}, counting(8))});
  loader.spec.tied_head = true;
  MatrixSource tokens = matrix(Matrix::tokens, "embed", 4, 2, 0);
  tokens.names.push_back("other");
  loader.sources.matrices = {tokens};
  const ModelWeights weights = loader.load();
  CHECK(weights.stage(2)[Matrix::head].panels == weights.stage(0)[Matrix::tokens].panels);
  CHECK(weights.stage(2)[Matrix::head].n == 4);
}

TEST_CASE("planning: what is missing or of another shape or type is refused before reading") {
  const TemporaryFolder folder;
  Loader loader;
  loader.store(folder, {f32_tensor("w", {4, 2}, counting(8)),
                        f32_tensor("flat", {8}, counting(8)),
                        {"mask", "BOOL", {4, 2}, std::string(8, '\1')}});
  const auto refused = [&](MatrixSource m) {
    loader.sources.matrices = {std::move(m)};
    return loader.refused();
  };
  CHECK_THAT(refused(matrix(Matrix::q, "gone", 4, 2)), Contains("tensor gone is missing"));
  CHECK_THAT(refused(matrix(Matrix::q, "w", 2, 4)),
             Contains("tensor w has shape [4, 2]") && Contains("asks for [2, 4]"));
  CHECK_THAT(refused(matrix(Matrix::q, "flat", 4, 2)), Contains("tensor flat has shape [8]"));
  CHECK_THAT(refused(matrix(Matrix::q, "mask", 4, 2)), Contains("tensor mask has type BOOL"));
  MatrixSource either = matrix(Matrix::q, "this", 4, 2);
  either.names.push_back("that");
  CHECK_THAT(refused(either), Contains("tensor this is missing (so is that)"));
  loader.sources.matrices.clear();
  loader.sources.vectors = {vector(Vector::out_bias, "flat", 0, 7, 7)};
  CHECK_THAT(loader.refused(), Contains("tensor flat has shape [8]"));
  CHECK(loader.device.allocations == 0);
}

TEST_CASE("planning: formats, activations and sizes are told") {
  log::set_level(log::Level::none);
  const TemporaryFolder folder;
  GgufWriter w;
  w.tensor({"q8", "q8_0", {16, 64}, std::string(16 * 68, '\0')});
  w.tensor({"q4", "q4_0", {64, 64}, std::string(64 * 36, '\0')});
  w.tensor({"b", "bf16", {2, 2}, std::string(8, '\0')});
  std::vector<File> files;
  files.emplace_back(folder.write("m.gguf", w.bytes()));
  GgufHeader head = read_gguf_header(files.front());
  Loader loader;
  loader.checkpoint = Checkpoint(std::move(files), std::move(head.tensors));
  loader.sources.matrices = {matrix(Matrix::q, "q8", 16, 64), matrix(Matrix::up, "q4", 64, 64)};
  WeightPlan plan = loader.plan();
  CHECK(plan.formats == "q4_0 + q8_0");
  CHECK(plan.activations == "int8");
  CHECK(plan.stored_bytes == 16 * 68 + 64 * 36);
  CHECK(plan.bytes == 16 * 68 + 64 * 36);  // both are multiples of 64
  CHECK(plan.parameters == 16 * 64 + 64 * 64);
  loader.sources.matrices.push_back(matrix(Matrix::out, "b", 2, 2));
  CHECK(loader.plan().activations == "int8 + bf16");
  loader.exact = true;
  CHECK(loader.plan().activations == "f32");
  CHECK(loader.load().stage(1)[Matrix::q].activations == Activations::f32);
}

TEST_CASE("loading: a value that is not finite is refused, naming tensor and row") {
  const TemporaryFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  struct Format {
    std::string type, gguf;
    int64_t columns, row_bytes;
    std::vector<int64_t> places;  // of values that are checked, in a row
    std::string bad;
  };
  const std::string nan32 = bytes_of<float>({nan}),
                    infinite32 = bytes_of<float>({-std::numeric_limits<float>::infinity()}),
                    nan16 = bytes_of<uint16_t>({0x7e01}), infinite16 = bytes_of<uint16_t>({0xfc00}),
                    nanb = bytes_of<uint16_t>({0x7fc0});
  const std::vector<Format> formats{
      {"F32", "f32", 64, 256, {0, 252}, nan32},        {"F32", "f32", 64, 256, {128}, infinite32},
      {"F16", "f16", 64, 128, {0, 126}, nan16},        {"F16", "f16", 64, 128, {50}, infinite16},
      {"BF16", "bf16", 64, 128, {0, 126}, nanb},       {"", "q8_0", 64, 68, {0, 34}, nan16},
      {"", "q4_0", 64, 36, {0, 18}, infinite16},       {"", "q4_1", 64, 40, {0, 2, 20, 22}, nan16},
      {"", "q4_k", 512, 288, {0, 2, 144, 146}, nan16}, {"", "q6_k", 512, 420, {208, 418}, nan16}};
  const int64_t n = 40, broken = 37;
  for (const Format& f : formats)
    for (const int64_t place : f.places) {
      INFO(f.gguf << " at byte " << place);
      GgufWriter w;
      std::string bytes(size_t(n * f.row_bytes), '\x11');
      w.tensor({"w", f.gguf, {n, f.columns}, bytes});
      bytes.replace(size_t(broken * f.row_bytes + place), f.bad.size(), f.bad);
      w.tensor({"bad", f.gguf, {n, f.columns}, bytes});
      std::vector<File> files;
      files.emplace_back(folder.write("m.gguf", w.bytes()));
      GgufHeader head = read_gguf_header(files.front());
      Loader loader;
      loader.checkpoint = Checkpoint(std::move(files), std::move(head.tensors));
      loader.sources.matrices = {matrix(Matrix::q, "w", n, f.columns)};
      CHECK(loader.refused() == "nothing was refused");
      loader.sources.matrices.push_back(matrix(Matrix::k, "bad", n, f.columns));
      CHECK_THAT(loader.refused(), Contains("tensor bad") && Contains("in row 37"));
    }
  Loader loader;
  loader.store(folder, {f32_tensor("bias", {2}, {1, nan})});
  loader.sources.vectors = {vector(Vector::out_bias, "bias", 0, 2, 2)};
  CHECK_THAT(loader.refused(), Contains("tensor bias holds a value that is not finite"));
}

TEST_CASE("loading: a file that is cut after it was opened is refused") {
  const TemporaryFolder folder;
  Loader loader;
  loader.store(folder, {f32_tensor("w", {64, 64}, counting(64 * 64))});
  loader.sources.matrices = {matrix(Matrix::q, "w", 64, 64)};
  std::filesystem::resize_file(folder.file("model.safetensors"), 1000);
  CHECK_THAT(loader.refused(), Contains("model.safetensors: w: the file ends at byte 1000"));
}

TEST_CASE("loading: what the progress callback throws ends it") {
  const TemporaryFolder folder;
  Loader loader;
  loader.store(folder, {f32_tensor("w", {3000, 256}, counting(3000 * 256))});
  loader.sources.matrices = {matrix(Matrix::q, "w", 3000, 256)};
  loader.device = RowDevice(1);
  loader.progress = [](uint64_t, uint64_t) { fail(Fault::bad_input, "enough"); };
  CHECK(refusal(Fault::bad_input, [&] { loader.load(); }) == "enough");
}

}  // namespace
}  // namespace hydrant::test
