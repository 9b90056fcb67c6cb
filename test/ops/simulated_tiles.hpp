// AMX's tiles and the instructions on them as Intel's manual describes them, in plain C++; what the
// processor would refuse throws.
#pragma once
#include <cstdint>
#include <cstring>

#include "runtime/backends/cpu/kernels/tile_config.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::test {

struct SimulatedTiles {
  static void configure(const cpu::TileConfig& config) {
    bool valid = config.palette == 1 && config.start_row == 0;
    for (const uint8_t byte : config.reserved) valid = valid && byte == 0;
    for (int i = 0; i < 16; i++) {
      const int rows = config.rows[i], bytes = config.row_bytes[i];
      valid =
          valid && (rows == 0) == (bytes == 0) && (i < 8 ? rows <= 16 && bytes <= 64 : rows == 0);
    }
    ensure(valid, "no configuration of tiles");
    shape = config;
    configured = true;
    memset(tiles, 0, sizeof tiles);
  }
  static void release() { configured = false; }

  template <int tile>
  static void zero() {
    check(tile);
    memset(&tiles[tile], 0, sizeof tiles[tile]);
  }
  template <int tile>
  static void load(const void* from, int64_t stride) {
    check(tile);
    memset(&tiles[tile], 0, sizeof tiles[tile]);
    for (int r = 0; r < shape.rows[tile]; r++)
      memcpy(tiles[tile].row[r], static_cast<const char*>(from) + r * stride,
             shape.row_bytes[tile]);
  }
  template <int tile>
  static void store(void* to, int64_t stride) {
    check(tile);
    for (int r = 0; r < shape.rows[tile]; r++)
      memcpy(static_cast<char*>(to) + r * stride, tiles[tile].row[r], shape.row_bytes[tile]);
  }
  // TDPBSUD: bytes of `a` are signed, bytes of `b` are not.
  template <int sums, int a, int b>
  static void add_dots() {
    static_assert(sums != a && sums != b && a != b);
    check(sums), check(a), check(b);
    ensure(shape.row_bytes[a] % 4 == 0 && shape.row_bytes[b] % 4 == 0 &&
               shape.row_bytes[sums] % 4 == 0 && shape.rows[sums] == shape.rows[a] &&
               shape.row_bytes[a] / 4 == shape.rows[b] &&
               shape.row_bytes[sums] == shape.row_bytes[b],
           "tiles {}, {} and {} have no product", sums, a, b);
    for (int m = 0; m < shape.rows[sums]; m++)
      for (int n = 0; n < shape.row_bytes[sums] / 4; n++) {
        int32_t sum;
        memcpy(&sum, tiles[sums].row[m] + n * 4, sizeof sum);
        for (int k = 0; k < shape.row_bytes[a] / 4; k++)
          for (int i = 0; i < 4; i++)
            sum += int8_t(tiles[a].row[m][k * 4 + i]) * tiles[b].row[k][n * 4 + i];
        memcpy(tiles[sums].row[m] + n * 4, &sum, sizeof sum);
      }
    products++;
  }

  static inline bool configured = false;
  static inline int64_t products = 0;

 private:
  struct Tile {
    uint8_t row[16][64];
  };
  static void check(int tile) {
    ensure(configured && tile < 8 && shape.rows[tile] != 0, "tile {} has no shape", tile);
  }
  static inline cpu::TileConfig shape;
  static inline Tile tiles[8];
};

}  // namespace hydrant::test
