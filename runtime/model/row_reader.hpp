// Reads chosen rows of a tensor with few, large reads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/model/checkpoint.hpp"

namespace hydrant {

// One thread's; keeps its memory from one call to the next.
class RowReader {
 public:
  explicit RowReader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // Reads the tensor's rows `wanted`, in whatever order they are listed. Neighbours in the file are
  // read at once. The pointers, one per wanted row, hold until the next call.
  std::span<const std::byte* const> read(const StoredTensor& tensor,
                                         std::span<const int64_t> wanted);

 private:
  const Checkpoint& checkpoint_;
  std::vector<size_t> order_;
  std::vector<std::byte> memory_;
  std::vector<const std::byte*> pointers_;
};

}  // namespace hydrant
