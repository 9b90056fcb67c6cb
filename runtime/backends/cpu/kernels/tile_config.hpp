// The shapes of AMX tiles, as LDTILECFG reads them.
#pragma once
#include <cstdint>

namespace hydrant::cpu {

struct alignas(64) TileConfig {
  uint8_t palette = 1;  // 8 tiles of up to 16 rows of up to 64 bytes
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr void shape(int tile, int tile_rows, int bytes) {
    rows[tile] = uint8_t(tile_rows);
    row_bytes[tile] = uint16_t(bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace hydrant::cpu
