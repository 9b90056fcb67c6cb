#include "runtime/model/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hydrant {
namespace {

constexpr double kMostTokens = 1e12;

// Slow components are interpolated, fast ones kept, those between blended: by how often a component
// turns over the length that the model was first trained on.
void scale_llama3(const ConfigReader& rope, RotarySpec& rotary) {
  const double factor = rope.positive("factor"), low = rope.positive("low_freq_factor"),
               high = rope.positive("high_freq_factor"),
               length = rope.positive("original_max_position_embeddings");
  if (high <= low) rope.refuse("high_freq_factor", "not above low_freq_factor");
  if (length > kMostTokens) rope.refuse("original_max_position_embeddings", "too large");
  for (double& f : rotary.inverse_frequency) {
    const double turns = length * f / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    f = (1 - kept) * f / factor + kept * f;
  }
}

void scale(const ConfigReader& rope, RotarySpec& rotary) {
  const std::string_view key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string kind = rope.text_or(key, "default");
  if (kind == "default") return;
  if (kind == "linear") {
    const double factor = rope.positive("factor");
    for (double& f : rotary.inverse_frequency) f /= factor;
  } else if (kind == "llama3") {
    scale_llama3(rope, rotary);
  } else {
    rope.refuse(key, "known are default, linear and llama3");
  }
}

}  // namespace

RotarySpec plain_rotary(double theta, int32_t dims) {
  RotarySpec rotary;
  rotary.dims = dims;
  for (int32_t i = 0; i < dims / 2; i++)
    rotary.inverse_frequency.push_back(std::pow(theta, -2.0 * i / dims));
  return rotary;
}

RotarySpec read_rope(const ConfigReader& config, int32_t head_dim, RopeDefaults defaults) {
  const std::optional<ConfigReader> parameters = config.object("rope_parameters"),
                                    scaling = config.object("rope_scaling");
  if (parameters) {
    defaults.theta = parameters->positive_or("rope_theta", defaults.theta);
    defaults.share = parameters->positive_or("partial_rotary_factor", defaults.share);
  }
  if (defaults.share > 1)
    (parameters ? *parameters : config).refuse("partial_rotary_factor", "more than 1");
  RotarySpec rotary = plain_rotary(defaults.theta, int32_t(head_dim * defaults.share));
  if (parameters)
    scale(*parameters, rotary);
  else if (scaling)
    scale(*scaling, rotary);
  return rotary;
}

}  // namespace hydrant
