// Products with packed weights.
//
// An output is one chain of operations over k = 0, 1, 2 ... in one lane, so a row's result is the
// same for every t, place, part, tile, thread count and instruction path.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cpu {

// A few rows of x, packed together.
struct LinearTile {
  int64_t first;
  int rows,
      shape;  // the shape is a number of rows of the path's table; those beyond `rows` are zero
  size_t offset;
};

// Workspace of linear(): x as the kernels read it. Grows to the largest call and is then reused.
class LinearScratch {
 public:
  std::byte* reserve(size_t bytes);  // 64-byte aligned; what it held is lost
  size_t bytes() const { return bytes_; }
  std::vector<LinearTile> tiles[3];  // by Activations

  // How far the work on a member's part is; each on its own cache line. packed: where the part is
  // rows, its x is there for others too.
  struct alignas(64) Progress {
    std::atomic<bool> packed;
    std::atomic<int64_t> next_panel;
  };
  std::span<Progress> start(int members);  // one for each: not packed, at panel 0

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_ = 0;
  std::unique_ptr<Progress[]> progress_;
  int members_ = 0;
};

// What a call with t rows of k reserves for parts of one kind of activations; calls whose parts
// differ need the sum over the kinds.
size_t linear_scratch_bytes(Isa isa, int threads, int64_t t, int64_t k, Activations activations);

void linear(ThreadPool& pool, Isa isa, const LinearArgs& args, LinearScratch& scratch);

}  // namespace hydrant::cpu
