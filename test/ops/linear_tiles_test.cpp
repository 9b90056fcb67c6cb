// The kernels of the amx path with simulated tiles, on machines that have none.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/backends/cpu/kernels/ints_avx512.hpp"
#include "runtime/backends/cpu/kernels/linear_tiles.hpp"
#include "runtime/backends/cpu/kernels/tile_config.hpp"
#include "test/ops/linear_case.hpp"
#include "test/ops/simulated_tiles.hpp"

#include "runtime/backends/cpu/kernels/begin_avx512.inc"
namespace hydrant::cpu::simulated_amx {

using namespace avx512;
using TileUnit = test::SimulatedTiles;

#include "runtime/backends/cpu/kernels/linear_blocks.inl"
#include "runtime/backends/cpu/kernels/linear_int8_block.inl"
#include "runtime/backends/cpu/kernels/linear_int8_dots_vnni.inl"
#include "runtime/backends/cpu/kernels/linear_int8_tile.inl"
#include "runtime/backends/cpu/kernels/linear_int8_tiles.inl"

}  // namespace hydrant::cpu::simulated_amx
#include "runtime/backends/cpu/kernels/end.inc"

using namespace hydrant;
using namespace hydrant::test;
using cpu::Isa;

namespace {

bool has(Isa isa) {
  const auto& usable = cpu::usable_isas();
  return std::find(usable.begin(), usable.end(), isa) != usable.end();
}

constexpr auto kInt8 = size_t(Activations::int8);
constexpr int kPanels = 5;

// Tiles of 16 rows among those that t rows are cut into, with both kernels; returns their number.
int compare_kernels(DType format, int64_t k, int64_t t) {
  const cpu::LinearPath& vnni = cpu::avx512::linear;
  const PackedWeights packed(random_weights(format, kPanels * 16 - 3, k, uint32_t(t)),
                             Activations::int8);
  auto x = random_floats(t * k, uint32_t(t + 1));
  for (int64_t i = 0; i < k; i++) x[size_t(i)] = i % 3 == 0 ? -1.0f : 1.0f;  // the largest codes
  x[size_t(t / 2 * k + 5)] = std::numeric_limits<float>::quiet_NaN();
  std::vector<cpu::LinearTile> tiles;
  std::vector<std::byte> scratch(
      cpu::cut_tiles(vnni, Activations::int8, t, k, /*ranges=*/1, &tiles));
  int compared = 0;
  for (const cpu::LinearTile& tile : tiles) {
    const int shape = vnni.shapes[kInt8].rows[tile.shape];
    if (shape != 16) continue;
    std::byte* const at = scratch.data() + tile.offset;
    vnni.pack[kInt8](&x[size_t(tile.first * k)], k, k, tile.rows, shape, at);
    for (int count = 1; count <= kPanels; count++) {
      const Weight& w = packed.weight();
      std::vector<float> expected(size_t(count) * 16 * 16, -1.0f), got(expected.size(), -2.0f);
      const auto* const panels = static_cast<const std::byte*>(w.panels);
      vnni.kernel(format, Activations::int8, tile.shape)(at, panels, w.panel_bytes, count, k,
                                                         expected.data());
      SimulatedTiles::products = 0;
      cpu::simulated_amx::sixteen_rows_kernel(format)(at, panels, w.panel_bytes, count, k,
                                                      got.data());
      INFO(name(format) << " k " << k << " t " << t << " first " << tile.first << " panels "
                        << count);
      REQUIRE(memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0);
      REQUIRE(SimulatedTiles::products == count * k / 32 * (format == DType::q6_k ? 2 : 1));
      REQUIRE(!SimulatedTiles::configured);
    }
    compared++;
  }
  return compared;
}

}  // namespace

TEST_CASE("int8 products in tiles have the bits of VNNI's, for every number of rows") {
  if (!has(Isa::avx512)) return;
  for (const Product what : every_product()) {
    if (what.activations != Activations::int8) continue;
    const int64_t unit = block_elements(what.format);
    for (const int64_t k : {unit, 3 * unit})
      for (int64_t t = 1; t <= 40; t++) {
        const int compared = compare_kernels(what.format, k, t);
        CHECK((compared > 0) == (t > 8));
      }
  }
}

TEST_CASE("the amx path is avx512-bf16 but for int8 products of sixteen rows") {
  if (!has(Isa::avx512_bf16)) return;
  const cpu::LinearPath &amx = cpu::amx::linear(), &other = cpu::avx512_bf16::linear;
  for (const Product what : every_product()) {
    const auto kind = size_t(what.activations);
    CHECK(amx.pack[kind] == other.pack[kind]);
    CHECK(amx.row_bytes_per_block[kind] == other.row_bytes_per_block[kind]);
    for (int shape = 0; shape < 6 && amx.shapes[kind].rows[shape] != 0; shape++) {
      const int rows = amx.shapes[kind].rows[shape];
      CHECK(rows == other.shapes[kind].rows[shape]);
      const auto kernel = amx.kernel(what.format, what.activations, shape);
      REQUIRE(kernel != nullptr);
      CHECK((kernel == other.kernel(what.format, what.activations, shape)) ==
            !(what.activations == Activations::int8 && rows == 16));
    }
  }
}
