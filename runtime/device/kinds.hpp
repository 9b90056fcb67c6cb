// Small enumerations that models choose and operations obey.
#pragma once
#include <cstdint>

namespace hydrant {

enum class NormKind : uint8_t { layer, rms };
// gelu is the exact one (erf), gelu_tanh the usual approximation ("gelu_new", "gelu_pytorch_tanh",
// "gelu_fast").
enum class Activation : uint8_t { none, relu, silu, gelu, gelu_tanh };
// What a product rounds its input to: nothing, bf16, int8 in blocks of 32 with an f32 scale, or f16
// with a power of two for each row (no input overflows).
enum class Activations : uint8_t { f32, bf16, int8, f16 };

}  // namespace hydrant
