// Element and block formats of tensors. Block formats are GGUF's (ggml's block_q8_0 and so on).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace hydrant {

enum class DType : uint8_t { f32, f16, bf16, i32, q8_0, q4_0, q4_1, q4_k, q6_k };

// Elements that share one block, and its bytes in a file; 1 and the element's size for plain types.
int64_t block_elements(DType dtype);
int64_t block_bytes(DType dtype);
constexpr bool is_quantised(DType dtype) { return dtype >= DType::q8_0; }

// Bytes of a row of `elements`. Throws internal if the row is not whole blocks (readers check
// first).
int64_t row_bytes(DType dtype, int64_t elements);

std::string_view name(DType dtype);                       // "bf16", "q4_0", ...
std::optional<DType> dtype_named(std::string_view name);  // the inverse

}  // namespace hydrant
