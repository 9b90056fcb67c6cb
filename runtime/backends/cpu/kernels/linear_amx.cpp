#include <utility>

#include "runtime/backends/cpu/kernels/ints_avx512.hpp"
#include "runtime/backends/cpu/kernels/linear_paths.hpp"
#include "runtime/backends/cpu/kernels/tile_config.hpp"

#include "runtime/backends/cpu/kernels/begin_avx512.inc"
namespace hydrant::cpu::amx {

using namespace avx512;

// The instructions themselves: g++ 12's functions for them take a tile's number as a word of the
// program text, and do not tell the compiler that a tile's memory is read.
struct TileUnit {
  static void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  static void release() { asm volatile("tilerelease"); }
  template <int tile>
  [[gnu::always_inline]] static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  [[gnu::always_inline]] static void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%1,%2), %%tmm%c0" : : "i"(tile), "r"(from), "r"(stride) : "memory");
  }
  // sums += x * codes: x is signed, codes are not.
  template <int sums, int x, int codes>
  [[gnu::always_inline]] static void add_dots() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(x), "i"(codes));
  }
  template <int tile>
  [[gnu::always_inline]] static void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c0, (%1,%2)" : : "i"(tile), "r"(to), "r"(stride) : "memory");
  }
};

#include "runtime/backends/cpu/kernels/linear_blocks.inl"
#include "runtime/backends/cpu/kernels/linear_int8_block.inl"
#include "runtime/backends/cpu/kernels/linear_int8_dots_vnni.inl"
#include "runtime/backends/cpu/kernels/linear_int8_tile.inl"
#include "runtime/backends/cpu/kernels/linear_int8_tiles.inl"

}  // namespace hydrant::cpu::amx
#include "runtime/backends/cpu/kernels/end.inc"

namespace hydrant::cpu::amx {
namespace {

// bf16 products have no tiles: AMX adds a pair's even and odd products in another order than the
// instruction for one register, so all numbers of rows would have to use it, or none.
MultiplyTile kernel(DType format, Activations activations, int shape) {
  const LinearPath& other = avx512_bf16::linear;
  if (activations == Activations::int8 && other.shapes[size_t(activations)].rows[shape] == 16)
    return sixteen_rows_kernel(format);
  return other.kernel(format, activations, shape);
}

}  // namespace

const LinearPath& linear() {
  static const LinearPath path = [] {
    LinearPath p = avx512_bf16::linear;
    p.kernel = kernel;
    return p;
  }();
  return path;
}

}  // namespace hydrant::cpu::amx
