// The functions of the vector layer as functions over 16 floats in memory, one table per path.
#pragma once
#include <cstdint>

#include "runtime/backends/cpu/isa.hpp"

namespace hydrant::cpu {

struct VecProbe {
  void (*exp)(const float* a, float* out);
  void (*fma)(const float* a, const float* b, const float* c, float* out);
  void (*max)(const float* a, const float* b, float* out);
  void (*min)(const float* a, const float* b, float* out);
  void (*round)(const float* a, float* out);
  // less, equal, and where a < b: a, else b
  void (*compare)(const float* a, const float* b, uint32_t* less, uint32_t* equal, float* least);
  void (*first)(const float* a, int n, float* loaded, float* stored, uint32_t* mask);
  void (*reduce)(const float* a, float* sum, float* most);
  void (*to_bf16)(const float* a, uint16_t* stored, float* loaded);
  void (*to_f16)(const float* a, uint16_t* stored, float* loaded);
  void (*load_f16)(const uint16_t* a, float* out);
  // out = sum + the dots of 16 pairs of bf16 with one pair
  void (*dot)(const float* sum, const uint16_t* pairs, float even, float odd, float* out);
};
const VecProbe& vec_probe(Isa isa);

namespace generic {
extern const VecProbe kVecProbe;
}
namespace avx2 {
extern const VecProbe kVecProbe;
}
namespace avx512 {
extern const VecProbe kVecProbe;
}
namespace avx512_bf16 {
extern const VecProbe kVecProbe;
}

}  // namespace hydrant::cpu
