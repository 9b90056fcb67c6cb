// A complete little model on disk: a LLaMA of two layers with random weights and a tokenizer whose
// tokens are the 256 bytes, "<s>" (256, put before every text) and "</s>" (257, ends one).
#pragma once
#include <cstdint>
#include <string>

#include "test/support/temporary_folder.hpp"

namespace hydrant::test {

inline constexpr int kTinyPositions = 64;

// Writes config.json, tokenizer.json and model.safetensors, whose values are F32, F16 or BF16.
void write_tiny_checkpoint(const TemporaryFolder& folder, const std::string& type = "F32");

// A LLaMA of layers of 8.4 MB in BF16, all weights zero: a file with a hole, which takes no room on
// disk. Returns the bytes of its weights.
uint64_t write_large_checkpoint(const TemporaryFolder& folder, int layers);

}  // namespace hydrant::test
