// How the rows of x are cut into the tiles that kernels take.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/backends/cpu/kernels/linear.hpp"
#include "runtime/backends/cpu/kernels/linear_paths.hpp"

namespace hydrant::cpu {

// Where a member's rows begin when t rows are split; ThreadPool::split() splits the same way.
inline int64_t first_row(int64_t t, int member, int members) { return t * member / members; }

// Cuts t rows of k elements, split into `ranges` first, and lists the tiles in `tiles` unless it is
// null. Returns the bytes that all of them take when packed.
size_t cut_tiles(const LinearPath& path, Activations kind, int64_t t, int64_t k, int ranges,
                 std::vector<LinearTile>* tiles);

}  // namespace hydrant::cpu
