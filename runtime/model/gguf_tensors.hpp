// The descriptions of a GGUF file's tensors, which follow the metadata.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/model/checkpoint.hpp"
#include "runtime/model/gguf_cursor.hpp"

namespace hydrant {

// Reads `count` descriptions, of which the rest of the file is known to hold that many. The data
// begin behind them at a multiple of `alignment`.
std::vector<StoredTensor> read_gguf_tensors(const File& file, GgufCursor& cursor, uint64_t count,
                                            uint64_t alignment);

}  // namespace hydrant
