// What descriptions of all families say in the same words: the sizes around the blocks.
#pragma once
#include <cstdint>
#include <string_view>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/model_files.hpp"
#include "runtime/model/spec.hpp"

namespace hydrant {

// config.json: vocab, hidden (the embedding is as wide), layers, eos.
ModelSpec outline_of_config(const ConfigReader& config);

// GGUF: these, positions, bos, and whether the head is tied.
ModelSpec outline_of_gguf(const ModelFiles& files, const ConfigReader& config);

// The number of heads, which is to divide `width`, given as `width_key`.
int32_t heads_across(const ConfigReader& config, std::string_view key, int32_t width,
                     std::string_view width_key);

}  // namespace hydrant
