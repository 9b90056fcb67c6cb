// Reads chosen rows of a tensor with few, large reads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
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
  uint64_t moved() const { return moved_; }  // by the latest read, what came along included

  // What reading these rows moves, and the memory that it takes.
  struct Cost {
    uint64_t moved = 0;
    size_t memory = 0;
  };
  Cost cost(const StoredTensor& tensor, std::span<const int64_t> wanted);
  void reserve(size_t memory);  // reads that take no more allocate nothing

 private:
  template <class Visit>
  void each_run(std::span<const int64_t> wanted, const Visit& visit);

  struct Free {
    void operator()(std::byte* p) const;
  };
  const Checkpoint& checkpoint_;
  std::vector<size_t> order_;
  std::unique_ptr<std::byte[], Free> memory_;
  size_t bytes_ = 0;
  uint64_t moved_ = 0;
  std::vector<const std::byte*> pointers_;
};

}  // namespace hydrant
