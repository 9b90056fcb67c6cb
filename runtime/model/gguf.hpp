// Reader of the GGUF format, versions 2 and 3, little-endian.
//
// Everything is checked before it is used: no count, length or offset of the file is trusted, and
// nothing is allocated that the rest of the file could not fill.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/model/checkpoint.hpp"

namespace hydrant {

// The keys tokenizer.ggml.* as they stand; absent ones are empty, -1 or not set.
struct GgufTokenizer {
  std::string model, pre;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  int32_t bos = -1, eos = -1, end_of_turn = -1, unknown = -1;
  std::optional<bool> add_bos, add_eos, add_space_prefix;

  std::vector<int32_t> ends() const;  // ids that end a text: eos, and end_of_turn where it differs
};

struct GgufHeader {
  // All keys and values as one object, but for the tokenizer's four long arrays. Other arrays of
  // more than 65,536 values are left out.
  std::shared_ptr<const nlohmann::json> metadata;
  GgufTokenizer tokenizer;
  std::vector<StoredTensor> tensors;
};

// Throws bad_file naming the file, the key or tensor, what was expected and what is there.
GgufHeader read_gguf_header(const File& file);

}  // namespace hydrant
