#include "runtime/model/row_reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

// Rows between two wanted ones that are read along: a pair's other half, where a permuted head is
// cut in two.
constexpr int64_t kBridge = 1;

}  // namespace

void RowReader::Free::operator()(std::byte* p) const { std::free(p); }

// Calls visit(first, count, wanted ones among them as indices) for what is read at once, in
// ascending order.
template <class Visit>
void RowReader::each_run(std::span<const int64_t> wanted, const Visit& visit) {
  order_.resize(wanted.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::sort(order_.begin(), order_.end(),
            [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  for (size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
    const int64_t first = wanted[order_[begin]];
    int64_t last = first;
    for (end = begin; end < order_.size() && wanted[order_[end]] - last <= 1 + kBridge; end++)
      last = wanted[order_[end]];
    visit(first, last - first + 1, std::span(order_).subspan(begin, end - begin));
  }
}

std::span<const std::byte* const> RowReader::read(const StoredTensor& tensor,
                                                  std::span<const int64_t> wanted) {
  const auto row = size_t(row_bytes(*tensor.dtype, tensor.columns));
  pointers_.resize(wanted.size());
  reserve(cost(tensor, wanted).memory);
  moved_ = 0;
  std::byte* to = memory_.get();
  each_run(wanted, [&](int64_t first, int64_t count, std::span<const size_t> indices) {
    const File::Arrived arrived = checkpoint_.read_extent(tensor, first, count, to);
    moved_ += arrived.bytes;
    for (const size_t i : indices) pointers_[i] = arrived.at + size_t(wanted[i] - first) * row;
    to += checkpoint_.extent(tensor, first, count).room;
  });
  return pointers_;
}

RowReader::Cost RowReader::cost(const StoredTensor& tensor, std::span<const int64_t> wanted) {
  Cost cost;
  each_run(wanted, [&](int64_t first, int64_t count, std::span<const size_t>) {
    const File::Extent extent = checkpoint_.extent(tensor, first, count);
    cost.moved += extent.bytes;
    cost.memory += extent.room;
  });
  return cost;
}

void RowReader::reserve(size_t memory) {
  if (memory <= bytes_) return;
  memory_.reset();
  bytes_ = 0;
  const size_t rounded = align_up(memory, File::kBlock);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(File::kBlock, rounded)));
  if (!memory_) fail(Fault::out_of_memory, "{} bytes for rows of a file", rounded);
  bytes_ = rounded;
}

}  // namespace hydrant
