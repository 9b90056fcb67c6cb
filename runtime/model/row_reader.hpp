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
  struct Place {
    const StoredTensor* tensor;
    uint64_t begin, end;  // in its file
    size_t wanted;        // which of them it is
  };
  struct Stretch {               // what is read at once
    const StoredTensor* tensor;  // of its first row
    uint64_t begin, end;
    size_t first, count;  // of places_
  };
  void find(std::span<const StoredRow> wanted, size_t bridge);  // both, in the order of the files
  Cost found() const;
  File::Extent extent(const Stretch& stretch) const;
  File::Arrived arrive(const Stretch& stretch, std::byte* to) const;

  struct Free {
    void operator()(std::byte* p) const;
  };
  const Checkpoint& checkpoint_;
  std::vector<Place> places_;
  std::vector<Stretch> stretches_;
  std::unique_ptr<std::byte[], Free> own_;
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  uint64_t moved_ = 0;
  std::vector<const std::byte*> pointers_;
};

}  // namespace hydrant
