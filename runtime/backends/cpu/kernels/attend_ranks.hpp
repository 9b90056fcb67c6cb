// The rank of each live slot of a head by its token's position: the place its key has in a cache of
// Positions::cache.
#pragma once
#include <cstddef>
#include <cstdint>

namespace hydrant::cpu {

// Bytes of `workspace` for positions up to `last_position`.
size_t rank_workspace_bytes(int32_t last_position);

// ranks[i] = how many of positions[0, count) are smaller than positions[i]. Positions are distinct
// and within [0, last_position]; throws internal if not.
void rank_positions(const int32_t* positions, int32_t count, int32_t last_position, void* workspace,
                    int32_t* ranks);

}  // namespace hydrant::cpu
