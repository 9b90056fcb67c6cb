// What elementwise.inl gives for each instruction path. AVX-512 with BF16 has nothing of its own.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/backends/cpu/kernels/elementwise.hpp"
#include "runtime/base/dtype.hpp"
#include "runtime/base/half.hpp"
#include "runtime/device/kinds.hpp"

namespace hydrant::cpu {

struct NormalizeRow {
  NormKind kind;
  const float *gain, *bias;  // bias may be null
  float epsilon;
  int64_t width;
};

struct ElementwisePath {
  void (*normalize)(const NormalizeRow& how, const float* in, float* out);
  void (*gate)(Activation kind, const float* gate, const float* up, int64_t width, float* out);
  LogitsPiece (*summarize)(const float* logits, int64_t count);
  // f32 to f32, f16 or bf16, rounded to nearest even
  void (*encode)(DType dtype, const float* from, int64_t count, std::byte* to);
};

namespace generic {
extern const ElementwisePath elementwise;
}
namespace avx2 {
extern const ElementwisePath elementwise;
}
namespace avx512 {
extern const ElementwisePath elementwise;
}

const ElementwisePath& elementwise_path(Isa isa);

}  // namespace hydrant::cpu
