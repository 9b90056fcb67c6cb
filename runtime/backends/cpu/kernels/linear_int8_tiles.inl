// Blocks of 16 rows of x with AMX, where the including file's TileUnit carries out the
// instructions; fewer rows are VNNI's. Both compute the exact integer dots, and the chains over
// blocks are the same code: an output has the same bits whichever multiplied its block.
//
// What this can gain, by Intel's manual: the sums of a block must leave their tile to be scaled,
// and a block fills half the depth of a tile. For 16 rows of x and 16 of W a product takes 16
// cycles and storing the sums 16, side by side; scaling them takes four instructions a row, 32
// cycles of two vector ports. VNNI has eight dots a row in these ports as well, 64 cycles more:
// three times its speed is the limit.

// The tiles. Those of halves are for q6_k, whose factors each reach over half a block.
enum { kSums, kHighSums, kRows, kCodes, kHalfRows, kHalfCodes };

constexpr TileConfig tile_config() {
  TileConfig config;
  config.shape(kSums, 16, 64);
  config.shape(kHighSums, 16, 64);
  config.shape(kRows, 16, 32);
  config.shape(kCodes, 8, 64);
  config.shape(kHalfRows, 16, 16);
  config.shape(kHalfCodes, 4, 64);
  return config;
}

// Tiles have their shapes for the time of one kernel: that is hundreds of products, and other code
// on the thread neither finds tiles in use nor saves them when it is interrupted.
class ShapedTiles {
 public:
  ShapedTiles() {
    static constexpr TileConfig config = tile_config();
    TileUnit::configure(config);
  }
  ~ShapedTiles() { TileUnit::release(); }
  ShapedTiles(const ShapedTiles&) = delete;
  ShapedTiles& operator=(const ShapedTiles&) = delete;
};

struct alignas(64) TileSums {
  int32_t at[16][16];  // [row of x][row of W]
};

// sums = x * codes; `rows` and `codes` are tiles of one depth.
template <int sums, int rows, int codes>
[[gnu::always_inline]] inline void multiply_in_tiles(const std::byte* x, const std::byte* w,
                                                     TileSums& out) {
  TileUnit::template zero<sums>();
  TileUnit::template load<rows>(x, kBlock);
  TileUnit::template load<codes>(w, 64);
  TileUnit::template add_dots<sums, rows, codes>();
  TileUnit::template store<sums>(&out, 64);
}

// The codes of a block as a tile wants them: a byte each.
template <DType F>
[[gnu::always_inline]] inline const std::byte* code_bytes(const std::byte* codes,
                                                          std::byte (&expanded)[512]) {
  if constexpr (F == DType::q8_0) return codes;
  const auto expand = [&]<int... j>(std::integer_sequence<int, j...>) {
    (store(reinterpret_cast<float*>(expanded + j * 64), as_lanes(quad_codes<F, j, kUp<F>>(codes))),
     ...);
  };
  expand(std::make_integer_sequence<int, 8>{});
  return expanded;
}

template <DType F, class Add>
[[gnu::always_inline]] inline void each_block_dot(const XBlock<16>& x, const std::byte* head,
                                                  const std::byte* codes, int64_t b,
                                                  const Add& add) {
  alignas(64) std::byte expanded[512];
  const std::byte* const w = code_bytes<F>(codes, expanded);
  TileSums sums;
  if constexpr (F == DType::q6_k) {
    TileSums high_sums;
    multiply_in_tiles<kSums, kHalfRows, kHalfCodes>(x.quad(0, 0), w, sums);
    multiply_in_tiles<kHighSums, kHalfRows, kHalfCodes>(x.quad(0, 4), w + 256, high_sums);
    const Ints low_factor = half_factor(head, b, 0), high_factor = half_factor(head, b, 1);
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++) {
      const Ints high = broadcast_int(x.high_start(r)), low = broadcast_int(x.start(r)) - high;
      add(r, (load_ints(sums.at[r]) + low) * low_factor +
                 (load_ints(high_sums.at[r]) + high) * high_factor);
    }
  } else {
    multiply_in_tiles<kSums, kRows, kCodes>(x.quad(0, 0), w, sums);
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++) {
      const Ints dot = load_ints(sums.at[r]);
      add(r, kHasMinimum<F> ? dot : dot + broadcast_int(x.start(r)));
    }
  }
}

template <DType F>
void multiply_sixteen_rows(const std::byte* tile, const std::byte* panels, size_t panel_bytes,
                           int count, int64_t k, float* sums) {
  const ShapedTiles shaped;
  multiply_int8_tile<F, 16>(tile, panels, panel_bytes, count, k, sums);
}

// For tiles of 16 rows with int8 activations; null for formats that are not multiplied so.
inline MultiplyTile sixteen_rows_kernel(DType format) {
  switch (format) {
    case DType::q8_0:
      return multiply_sixteen_rows<DType::q8_0>;
    case DType::q4_0:
      return multiply_sixteen_rows<DType::q4_0>;
    case DType::q4_1:
      return multiply_sixteen_rows<DType::q4_1>;
    case DType::q4_k:
      return multiply_sixteen_rows<DType::q4_k>;
    case DType::q6_k:
      return multiply_sixteen_rows<DType::q6_k>;
    default:
      return nullptr;
  }
}
