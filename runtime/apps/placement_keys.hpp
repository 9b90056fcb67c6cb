// The kinds of value that keys of memory and placement hold; as in key_kinds.hpp.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/apps/key_kinds.hpp"

namespace hydrant {

// "auto", or the six percentages that it is short for.
std::string placement_text(const PlacementConfig& placement);

}  // namespace hydrant

namespace hydrant::kinds {

// Bytes, or bytes a second: an integer, or a text as in sizes.hpp.
Key size(Member<std::optional<uint64_t>> member);
Key rate(Member<std::optional<uint64_t>> member);

// {"device": 20, "host": 80}; the flag: 20,80. The disk's share is the rest where it is not given.
// A member of the configuration's placement, which is then no longer automatic.
Key shares(Member<Shares> member);
// All of them at once: "auto", or FlexGen's six numbers, device and host of weights, cache and
// activations, the rest of each pair being disk.
Key whole_placement();
// A list of them, in their short forms.
Key placements();

}  // namespace hydrant::kinds
