#include "runtime/model/row_reader.hpp"

#include <algorithm>
#include <numeric>

namespace hydrant {
namespace {

// Rows between two wanted ones that are read along: a pair's other half, where a permuted head is
// cut in two.
constexpr int64_t kBridge = 1;

}  // namespace

std::span<const std::byte* const> RowReader::read(const StoredTensor& tensor,
                                                  std::span<const int64_t> wanted) {
  const auto row = size_t(row_bytes(*tensor.dtype, tensor.columns));
  order_.resize(wanted.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::sort(order_.begin(), order_.end(),
            [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  pointers_.resize(wanted.size());
  memory_.resize(std::max(memory_.size(), (1 + size_t(kBridge)) * wanted.size() * row));

  std::byte* to = memory_.data();
  for (size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
    const int64_t first = wanted[order_[begin]];
    int64_t last = first;
    for (end = begin; end < order_.size() && wanted[order_[end]] - last <= 1 + kBridge; end++) {
      last = wanted[order_[end]];
      pointers_[order_[end]] = to + size_t(last - first) * row;
    }
    checkpoint_.read_rows(tensor, first, last - first + 1, to);
    to += size_t(last - first + 1) * row;
  }
  return pointers_;
}

}  // namespace hydrant
