// The frequencies of rotary position embedding, from a Hugging Face description.
#pragma once
#include <string_view>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/spec.hpp"

namespace hydrant {

// theta^(-2 i / dims) for i in [0, dims / 2).
RotarySpec plain_rotary(double theta, int32_t dims);

// What the description gives outside `rope_parameters`; that object, where it is there, wins.
struct RopeDefaults {
  double theta = 10000;
  double share = 1;  // of a head's components that are rotated
};

// Reads rope_parameters (as newer files have it) or rope_scaling: none, default, linear or llama3,
// with the kind under `rope_type` or `type`. Refuses other kinds by name.
RotarySpec read_rope(const ConfigReader& config, int32_t head_dim, RopeDefaults defaults);

}  // namespace hydrant
