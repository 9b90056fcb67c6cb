#include "runtime/model/row_reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

uint64_t row_size(const StoredTensor& t) { return uint64_t(row_bytes(*t.dtype, t.columns)); }
uint64_t begin_of(const StoredRow& r) {
  return r.tensor->offset + uint64_t(r.row) * row_size(*r.tensor);
}

}  // namespace

void RowReader::Free::operator()(std::byte* p) const { std::free(p); }

// Calls visit(begin, end, wanted ones among them as indices) for what is read at once, in
// ascending order.
template <class Visit>
void RowReader::each_stretch(std::span<const StoredRow> wanted, size_t bridge, const Visit& visit) {
  for (const StoredRow& r : wanted)
    ensure(r.tensor->dtype && r.row >= 0 && r.row < r.tensor->rows, "row {} of {}", r.row,
           r.tensor->name);
  const auto key = [&](size_t i) { return std::pair(wanted[i].tensor->file, begin_of(wanted[i])); };
  order_.resize(wanted.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  for (size_t first = 0, next = 0; first < order_.size(); first = next) {
    const auto [file, begin] = key(order_[first]);
    uint64_t end = begin;
    for (next = first; next < order_.size(); next++) {
      const auto [other_file, at] = key(order_[next]);
      if (other_file != file || at > end + (next > first ? bridge : 0)) break;
      // Rows that are made are made tensor by tensor.
      if (checkpoint_.is_made() && wanted[order_[next]].tensor != wanted[order_[first]].tensor)
        break;
      end = std::max(end, at + row_size(*wanted[order_[next]].tensor));
    }
    visit(begin, end, std::span(order_).subspan(first, next - first));
  }
}

File::Extent RowReader::extent(const StoredTensor& first, uint64_t begin, uint64_t end) const {
  if (!checkpoint_.is_made())
    return checkpoint_.files()[first.file].extent(begin, size_t(end - begin));
  const uint64_t row = row_size(first);
  return checkpoint_.extent(first, int64_t((begin - first.offset) / row),
                            int64_t((end - begin) / row));
}

File::Arrived RowReader::arrive(const StoredTensor& first, uint64_t begin, uint64_t end,
                                std::byte* to) const {
  if (!checkpoint_.is_made())
    return checkpoint_.files()[first.file].read_extent(begin, size_t(end - begin), to, first.name);
  const uint64_t row = row_size(first);
  return checkpoint_.read_extent(first, int64_t((begin - first.offset) / row),
                                 int64_t((end - begin) / row), to);
}

std::span<const std::byte* const> RowReader::read(std::span<const StoredRow> wanted,
                                                  size_t bridge) {
  pointers_.resize(wanted.size());
  reserve(cost(wanted, bridge).memory);
  moved_ = 0;
  std::byte* to = memory_;
  each_stretch(wanted, bridge, [&](uint64_t begin, uint64_t end, std::span<const size_t> indices) {
    const StoredTensor& first = *wanted[indices.front()].tensor;
    const File::Arrived arrived = arrive(first, begin, end, to);
    moved_ += arrived.bytes;
    for (const size_t i : indices) pointers_[i] = arrived.at + (begin_of(wanted[i]) - begin);
    to += extent(first, begin, end).room;
  });
  return pointers_;
}

RowReader::Cost RowReader::cost(std::span<const StoredRow> wanted, size_t bridge) {
  Cost cost;
  each_stretch(wanted, bridge, [&](uint64_t begin, uint64_t end, std::span<const size_t> indices) {
    const File::Extent all = extent(*wanted[indices.front()].tensor, begin, end);
    cost.moved += all.bytes;
    cost.memory += all.room;
    cost.requests++;
  });
  return cost;
}

void RowReader::use(std::byte* memory, size_t bytes) {
  own_.reset();
  memory_ = memory;
  bytes_ = bytes;
}

void RowReader::reserve(size_t bytes) {
  if (bytes <= bytes_) return;
  use(nullptr, 0);
  const size_t rounded = align_up(bytes, File::kBlock);
  own_.reset(static_cast<std::byte*>(std::aligned_alloc(File::kBlock, rounded)));
  if (!own_) fail(Fault::out_of_memory, "{} bytes for rows of a file", rounded);
  memory_ = own_.get();
  bytes_ = rounded;
}

}  // namespace hydrant
