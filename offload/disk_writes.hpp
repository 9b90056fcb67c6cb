// How much of what a step changes of a row's block goes to the file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "offload/cache_layout.hpp"

namespace hydrant {

// Units that a row's tail has room for: two runs of each head, for the ring's and another.
size_t tail_units(const CacheLayout& layout, int32_t layer);

// Units of the row's block that decoding the token at `position` changes, ascending: what its two
// moves write. victims: [kv head], the slots of those that leave; empty where nobody does.
std::vector<size_t> changed_units(const CacheLayout& layout, int32_t layer,
                                  const policy::SlotLayout& slots, int32_t position,
                                  std::span<const int32_t> victims);

// Bytes that decoding `count` tokens from `position` on, behind a prompt, writes of a row. Nothing
// where who leaves depends on what was attended to.
std::optional<uint64_t> decode_written(const CacheLayout& layout, int32_t layer,
                                       const policy::SlotLayout& slots, int32_t position,
                                       int32_t count);

}  // namespace hydrant
