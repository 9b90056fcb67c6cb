// Panels: their size, and rows out of them against the decoding of the file's own blocks.
#include <catch2/catch.hpp>
#include <string>

#include "runtime/backends/cpu/kernels/embed.hpp"
#include "runtime/backends/cpu/kernels/pack.hpp"
#include "runtime/base/error.hpp"
#include "test/ops/linear_case.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

constexpr DType kFormats[] = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0,
                              DType::q4_0, DType::q4_1, DType::q4_k, DType::q6_k};

EmbedArgs gather(const PackedWeights& table, const std::vector<int32_t>& rows,
                 std::vector<float>& out) {
  const auto t = int64_t(rows.size());
  out.resize(size_t(t * table.weight().k));
  EmbedArgs args;
  args.indices = {rows.data(), DType::i32, {t}};
  args.table = table.weight();
  args.out = {out.data(), DType::f32, {t, table.weight().k}};
  return args;
}

}  // namespace

TEST_CASE("a panel is as large as its rows in the file, up to 64-byte alignment") {
  for (const DType format : kFormats)
    for (int64_t k = block_elements(format); k <= 2048; k += block_elements(format)) {
      const auto stored = size_t(16 * row_bytes(format, k)), packed = cpu::panel_bytes(format, k);
      INFO(name(format) << " k " << k);
      CHECK(packed % 64 == 0);
      // q4_k keeps its 6-bit factors as bytes (148 for 144 bytes per 256), q6_k aligns each 256
      const size_t most = format == DType::q4_k   ? stored / 144 * 148
                          : format == DType::q6_k ? stored / 210 * 212
                                                  : stored + 63;
      if (format == DType::bf16 && k % 2 != 0)
        CHECK(packed < stored + 32 + 64);
      else
        CHECK((packed >= stored && packed <= most));
    }
}

TEST_CASE("rows come out of panels with exactly the values of their blocks") {
  cpu::ThreadPool pool(2);
  for (const DType format : kFormats) {
    const int64_t n = 37;
    for (const int64_t k : {block_elements(format), 3 * block_elements(format),
                            21 * block_elements(format), int64_t{768}}) {
      const FileWeights file = random_weights(format, n, k, uint32_t(k));
      const PackedWeights packed(file, Activations::f32);
      std::vector<int32_t> rows;
      for (int32_t i = 0; i < 100; i++) rows.push_back(i * 7 % 37);
      std::vector<float> out;
      cpu::embed(pool, gather(packed, rows, out));
      for (size_t i = 0; i < rows.size(); i++)
        for (size_t j = 0; j < size_t(k); j++) {
          const auto value = float(file.values[size_t(rows[i]) * size_t(k) + j]);
          if (out[i * size_t(k) + j] != value)
            FAIL(name(format) << " row " << rows[i] << " element " << j << ": "
                              << out[i * size_t(k) + j] << ", should be " << value);
        }
    }
  }
}

TEST_CASE("embedding rows start at the offset and may be added") {
  cpu::ThreadPool pool(1);
  const FileWeights file = random_weights(DType::f16, 20, 40, 1);
  const PackedWeights packed(file, Activations::f32);
  const std::vector<int32_t> rows{0, 3, 17};
  std::vector<float> out;
  EmbedArgs args = gather(packed, rows, out);
  std::fill(out.begin(), out.end(), 1.0f);
  args.offset = 2;
  args.accumulate = true;
  cpu::embed(pool, args);
  for (size_t i = 0; i < rows.size(); i++)
    for (size_t j = 0; j < 40; j++)
      CHECK(out[i * 40 + j] == 1.0f + float(file.values[size_t(rows[i] + 2) * 40 + j]));
}

TEST_CASE("runs of a table's panels are looked up one after the other") {
  cpu::ThreadPool pool(2);
  const FileWeights file = random_weights(DType::f16, 70, 512, 3);
  const PackedWeights packed(file, Activations::f32);
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < 100; i++) rows.push_back(i * 11 % 70);
  std::vector<float> whole, runs;
  EmbedArgs args = gather(packed, rows, whole);
  for (const bool accumulate : {false, true}) {
    args = gather(packed, rows, whole);
    std::fill(whole.begin(), whole.end(), 0.5f);
    args.accumulate = accumulate;
    cpu::embed(pool, args);
    EmbedArgs run = gather(packed, rows, runs);
    std::fill(runs.begin(), runs.end(), 0.5f);
    run.accumulate = accumulate;
    run.partial = true;
    const Weight table = run.table;
    const int64_t borders[] = {0, 32, 48, 70};
    for (int i = 0; i < 3; i++) {
      run.table.panels = static_cast<const std::byte*>(table.panels) +
                         size_t(borders[i] / kPanelRows) * table.panel_bytes;
      run.table.n = borders[i + 1] - borders[i];
      run.offset = int32_t(-borders[i]);
      cpu::embed(pool, run);
    }
    CHECK(runs == whole);
  }
}

TEST_CASE("an index outside the table is refused by its number") {
  cpu::ThreadPool pool(1);
  const PackedWeights packed(random_weights(DType::bf16, 20, 8, 1), Activations::f32);
  std::vector<float> out;
  for (const int32_t row : {-1, 20}) {
    try {
      cpu::embed(pool, gather(packed, {row}, out));
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::internal);
      CHECK(std::string(error.what()).find(std::to_string(row)) != std::string::npos);
    }
  }
}

TEST_CASE("rows that are missing from a panel are zero") {
  for (const DType format : kFormats) {
    const FileWeights file = random_weights(format, 3, 256, 1);
    const PackedWeights packed(file, Activations::f32);
    std::vector<float> row(256);
    for (int lane = 3; lane < 16; lane++) {
      cpu::unpack_row(format, 256, static_cast<const std::byte*>(packed.weight().panels), lane,
                      row.data());
      for (const float f : row) CHECK(f == 0);
    }
  }
}
