// What products should be and how far correct ones may be from it, for tests of every device.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "test/ops/linear_case.hpp"
#include "test/ops/upload.hpp"
#include "test/support/near.hpp"

namespace hydrant::test {

std::span<const Product> products_of(const DeviceChoice& choice);
// Of rows of weights in the format.
std::vector<int64_t> widths(DType format);

// More tokens than this go through cuBLAS on a card, those whose input is rounded to int8 when they
// are more than kSome.
inline constexpr int64_t kFew = 8, kSome = 64;

// In f16 or bf16.
bool on_tensor_cores(const Bench& bench, int64_t tokens, Activations activations);

// Sums round k times at most; bf16 inputs are rounded before; int8 ones are off by half a step of
// their block of 32, max |x| / 254, a little more with the roundings of scales and codes. Weights
// of blocks round once when they become f32.
//
// What is rounded to f16 is off by 2^-11 of itself at most; below f16's normal numbers a weight by
// 2^-25, and an input by 2^-38 of the row's largest. bf16 is exact there but for these two. On
// tensor cores both factors are rounded so (bf16 on a card that has none for it), and sums may be
// cut off where others are rounded, which is twice as much.
Expected product_of(const FileWeights& w, int64_t output, const float* x, Activations activations,
                    bool tensor_cores = false);

// The same of int8 activations with the codes that x has: dots of blocks are exact, and what is
// left are the roundings of the chain over blocks. In each: the dot's own, the product of the
// scales or of the minimum and the sum, two steps; then a few of the scale of x and where chains
// come together.
Expected product_of_codes(const FileWeights& w, int64_t output, const float* x);

}  // namespace hydrant::test
