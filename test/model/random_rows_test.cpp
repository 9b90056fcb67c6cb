// Weights that are made up: what a number depends on, and what it does not.
#include "runtime/model/random_rows.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "runtime/base/half.hpp"
#include "runtime/model/finite.hpp"
#include "runtime/model/shape.hpp"
#include "test/support/refusal.hpp"

namespace hydrant::test {
namespace {

using Catch::Matchers::Contains;

constexpr int64_t kColumns = 96;

// Two blocks with a norm and a matrix each, and a table.
WeightSources two_blocks() {
  WeightSources sources;
  const auto matrix = [&](int stage, const std::string& name, int64_t rows) {
    MatrixSource& m = sources.matrices.emplace_back();
    m.stage = stage;
    m.names = {name};
    m.n = m.tensor_rows = rows;
    m.k = kColumns;
  };
  const auto vector = [&](int stage, const std::string& name, Vector role) {
    VectorSource& v = sources.vectors.emplace_back();
    v.stage = stage;
    v.names = {name};
    v.role = role;
    v.size = v.vector_size = v.tensor_size = kColumns;
  };
  matrix(0, "embed.weight", 300);
  for (int i = 0; i < 2; i++) {
    const std::string block = "layers." + std::to_string(i);
    matrix(1 + i, block + ".up.weight", 70);
    vector(1 + i, block + ".norm.weight", Vector::norm1_gain);
    vector(1 + i, block + ".up.bias", Vector::up_bias);
  }
  return sources;
}

std::string rows_of(const Checkpoint& made, const std::string& name, int64_t first, int64_t count) {
  const StoredTensor& t = *made.find(name);
  std::string bytes(size_t(count * row_bytes(*t.dtype, t.columns)), '\0');
  made.read_rows(t, first, count, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}
std::string all_of(const Checkpoint& made, const std::string& name) {
  return rows_of(made, name, 0, made.find(name)->rows);
}

std::vector<float> values_of(DType dtype, const std::string& bytes) {
  std::vector<float> values;
  const auto half = [&](size_t at) {
    uint16_t h;
    std::memcpy(&h, bytes.data() + at, 2);
    return h;
  };
  for (size_t at = 0; at < bytes.size(); at += size_t(block_bytes(dtype))) switch (dtype) {
      case DType::f32: {
        float v;
        std::memcpy(&v, bytes.data() + at, 4);
        values.push_back(v);
        break;
      }
      case DType::q8_0:
        for (size_t i = 0; i < 32; i++)
          values.push_back(f16_to_f32(half(at)) * float(int8_t(bytes[at + 2 + i])));
        break;
      case DType::q4_0:
        for (size_t i = 0; i < 16; i++)
          for (const int code : {uint8_t(bytes[at + 2 + i]) & 15, uint8_t(bytes[at + 2 + i]) >> 4})
            values.push_back(f16_to_f32(half(at)) * float(code - 8));
        break;
      default:
        values.push_back(dtype == DType::f16 ? f16_to_f32(half(at)) : bf16_to_f32(half(at)));
    }
  return values;
}

}  // namespace

TEST_CASE("made-up weights depend on seed, name and place alone, blocks are alike") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0}) {
    CAPTURE(name(dtype));
    const auto made = [&](uint64_t seed) {
      return synthetic_tensors("x", two_blocks(), dtype, seed);
    };
    const Checkpoint one = made(5), other = made(5), seeded = made(6);
    const std::string table = all_of(one, "embed.weight");
    CHECK(table == all_of(other, "embed.weight"));
    CHECK(table != all_of(seeded, "embed.weight"));
    CHECK(all_of(one, "layers.0.up.weight") == all_of(one, "layers.1.up.weight"));
    CHECK(all_of(one, "layers.0.up.weight") != rows_of(one, "embed.weight", 0, 70));
    const size_t row = table.size() / 300;
    CHECK(table.substr(17 * row, 3 * row) == rows_of(one, "embed.weight", 17, 3));
    CHECK(table.substr(0, row) != table.substr(row, row));
  }
}

TEST_CASE("made-up weights have the spread of models before training, gains are ones") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0}) {
    CAPTURE(name(dtype));
    const Checkpoint made = synthetic_tensors("x", two_blocks(), dtype, 1);
    const std::vector<float> values = values_of(dtype, all_of(made, "embed.weight"));
    REQUIRE(values.size() == 300 * kColumns);
    double sum = 0, squares = 0;
    for (const float v : values) {
      sum += v;
      squares += double(v) * v;
    }
    const double n = double(values.size());
    // Of 28,800 draws the mean strays by 0.02 / 170 = 0.00012; codes of four bits, -8 to 7, have
    // the mean -0.5 of a step of 0.0043. The deviation strays by less than 0.5 %, and the steps of
    // four bits take 0.4 % of it.
    CHECK(std::abs(sum / n + (dtype == DType::q4_0 ? 0.00217 : 0)) < 0.0006);
    CHECK(std::sqrt(squares / n - sum / n * sum / n) == Approx(0.02).epsilon(0.02));

    const DType plain = is_quantised(dtype) ? DType::f32 : dtype;
    CHECK(made.find("layers.0.up.bias")->dtype == plain);
    CHECK(values_of(plain, all_of(made, "layers.1.norm.weight")) ==
          std::vector<float>(kColumns, 1.0f));
  }
}

TEST_CASE("made-up tensors are laid out as in a file, without overlap") {
  const Checkpoint made = synthetic_tensors("x", two_blocks(), DType::q8_0, 1);
  CHECK(made.is_made());
  CHECK(made.is_readable());
  CHECK(made.files().empty());
  uint64_t bytes = 0;
  for (const StoredTensor& a : made.tensors()) {
    bytes += a.bytes;
    CHECK(a.offset + a.bytes <= made.made_bytes());
    for (const StoredTensor& b : made.tensors())
      CHECK((&a == &b || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset));
  }
  CHECK(made.made_bytes() < bytes + 64 * made.tensors().size());
  CHECK(made.path_of(*made.find("embed.weight")) == "x");
  CHECK_FALSE(shape_tensors(two_blocks(), DType::q8_0).is_readable());
}

TEST_CASE("rows that are not whole blocks are refused") {
  WeightSources sources = two_blocks();
  sources.matrices[1].k = 80;
  CHECK_THAT(refusal(Fault::bad_config, [&] { synthetic_tensors("x", sources, DType::q4_0, 1); }),
             Contains("q4_0: blocks of 32 elements do not fit rows of 80") &&
                 Contains("layers.0.up.weight"));
}

}  // namespace hydrant::test
