// What settle.inl offers on each instruction path.
#pragma once
#include <cstddef>
#include <cstdint>

namespace hydrant::cpu {

// The logits of one KV head's query heads for a step: those of query head g at logits + g * stride,
// readable to the end of the last 16 rows.
struct HeadLogits {
  const float* logits = nullptr;
  const float* lse = nullptr;  // [query heads]
  size_t stride = 0;
  int32_t query_heads = 0;
};

// mass[i] = probability that row begin + i received, summed over the query heads in order; rows are
// done in sixteens, so mass holds ceil16(count).
using SumMass = void (*)(const HeadLogits& head, int32_t begin, int32_t count, float* mass);

namespace generic {
void sum_mass(const HeadLogits& head, int32_t begin, int32_t count, float* mass);
}
namespace avx2 {
void sum_mass(const HeadLogits& head, int32_t begin, int32_t count, float* mass);
}
namespace avx512 {
void sum_mass(const HeadLogits& head, int32_t begin, int32_t count, float* mass);
}

}  // namespace hydrant::cpu
