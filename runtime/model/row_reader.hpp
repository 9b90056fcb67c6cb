// Reads chosen rows of tensors with few, large reads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/model/checkpoint.hpp"

namespace hydrant {

struct StoredRow {
  const StoredTensor* tensor = nullptr;
  int64_t row = 0;
};

// One thread's; keeps its memory from one call to the next.
class RowReader {
 public:
  explicit RowReader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // Reads the rows `wanted`, of whatever tensors, in whatever order they are listed. Neighbours in
  // a file are read at once, and with them the at most `bridge` bytes that lie between two. The
  // pointers, one per wanted row, hold until the next call.
  std::span<const std::byte* const> read(std::span<const StoredRow> wanted, size_t bridge);
  uint64_t moved() const { return moved_; }  // by the latest read, what came along included

  // What reading these rows moves, the memory that it takes, and in how many requests.
  struct Cost {
    uint64_t moved = 0;
    size_t memory = 0;
    int64_t requests = 0;
  };
  Cost cost(std::span<const StoredRow> wanted, size_t bridge);
  // Reads that take no more allocate nothing: memory of its own, or the caller's, on a border of
  // File::kBlock.
  void reserve(size_t bytes);
  void use(std::byte* memory, size_t bytes);

 private:
  template <class Visit>
  void each_stretch(std::span<const StoredRow> wanted, size_t bridge, const Visit& visit);

  // Of one stretch, whose first row is of that tensor.
  File::Extent extent(const StoredTensor& first, uint64_t begin, uint64_t end) const;
  File::Arrived arrive(const StoredTensor& first, uint64_t begin, uint64_t end,
                       std::byte* to) const;

  struct Free {
    void operator()(std::byte* p) const;
  };
  const Checkpoint& checkpoint_;
  std::vector<size_t> order_;
  std::unique_ptr<std::byte[], Free> own_;
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  uint64_t moved_ = 0;
  std::vector<const std::byte*> pointers_;
};

}  // namespace hydrant
