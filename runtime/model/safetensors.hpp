// Reader of the safetensors format.
//
// A file is a little-endian u64 (the header's length), a JSON header {name: {dtype, shape,
// data_offsets}} and the tensors' bytes, which must fill the rest of the file without overlap or
// hole. Everything is checked before it is used; a file that breaks a rule is refused with one line
// naming the file, the tensor, what was expected and what is there. Only a hole is left to those
// who know which tensors there should be: an entry may have been lost.
#pragma once
#include <string>
#include <vector>

#include "runtime/model/checkpoint.hpp"

namespace hydrant {

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;
  std::string hole;  // where the first one is, as a message; empty: there is none
};
// One file. Its tensors get file index `index`.
SafetensorsHeader read_safetensors_header(const File& file, size_t index);

// FOLDER/model.safetensors, or all shards that FOLDER/model.safetensors.index.json names.
Checkpoint open_safetensors(const std::string& folder);

}  // namespace hydrant
