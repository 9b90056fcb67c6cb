// How the drivers of attention lay out their scratch: the functions that carve it also measure it.
#pragma once
#include "runtime/backends/cpu/kernels/attend_paths.hpp"
#include "runtime/device/buffer.hpp"

namespace hydrant::cpu {

const AttendKernels& attend_kernels(Isa isa);

template <class T>
T* take(Arena& arena, size_t count) {
  return static_cast<T*>(arena.take_bytes(count * sizeof(T)));
}

// `count` of them, null when measuring. `rotated`: keys of Positions::cache are to be turned.
TileScratch* take_tiles(Arena& arena, int count, int32_t head_dim, int32_t rows, bool rotated);

// Grows the scratch to what `carve(arena)` takes and returns what it returns.
template <class Carve>
auto carve_from(AttendScratch& scratch, const Carve& carve) {
  Arena measuring;
  carve(measuring);
  Arena arena(scratch.at_least(measuring.used()));
  return carve(arena);
}
template <class Carve>
size_t bytes_of(const Carve& carve) {
  Arena measuring;
  carve(measuring);
  return measuring.used();
}

}  // namespace hydrant::cpu
