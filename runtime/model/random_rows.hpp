// Rows of weights that are made up.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_set>

#include "runtime/model/checkpoint.hpp"

namespace hydrant {

// Uniform random numbers in f32, f16, bf16, q8_0 or q4_0, around zero with a standard deviation of
// 0.02; ones in tensors named in `ones`, which are of a plain type. A number is a function of the
// seed, the tensor's name without its numbers (so that all blocks are alike), its row and its
// column.
MakeRows random_rows(std::unordered_set<std::string> ones, uint64_t seed);

}  // namespace hydrant
