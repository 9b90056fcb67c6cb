#include "runtime/model/row_reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

uint64_t row_size(const StoredTensor& t) { return uint64_t(row_bytes(*t.dtype, t.columns)); }

}  // namespace

void RowReader::Free::operator()(std::byte* p) const { std::free(p); }

// A row costs little beside its bytes: small models have rows of a few hundred, and read them all
// again in every step.
void RowReader::find(std::span<const StoredRow> wanted, size_t bridge) {
  places_.clear();
  const StoredTensor* tensor = nullptr;
  uint64_t bytes = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    const StoredRow& r = wanted[i];
    ensure(r.tensor->dtype && r.row >= 0 && r.row < r.tensor->rows, "row {} of {}", r.row,
           r.tensor->name);
    if (r.tensor != tensor) bytes = row_size(*r.tensor);
    tensor = r.tensor;
    const uint64_t begin = tensor->offset + uint64_t(r.row) * bytes;
    places_.push_back({tensor, begin, begin + bytes, i});
  }
  const auto before = [](const Place& a, const Place& b) {
    return std::pair(a.tensor->file, a.begin) < std::pair(b.tensor->file, b.begin);
  };
  if (!std::is_sorted(places_.begin(), places_.end(), before))
    std::sort(places_.begin(), places_.end(), before);
  stretches_.clear();
  for (size_t i = 0; i < places_.size(); i++) {
    const Place& p = places_[i];
    Stretch* const last = stretches_.empty() ? nullptr : &stretches_.back();
    // Rows that are made are made tensor by tensor.
    if (last && last->tensor->file == p.tensor->file && p.begin <= last->end + bridge &&
        (last->tensor == p.tensor || !checkpoint_.is_made()))
      last->end = std::max(last->end, p.end);
    else
      stretches_.push_back({p.tensor, p.begin, p.end, i, 0});
    stretches_.back().count++;
  }
}

File::Extent RowReader::extent(const Stretch& s) const {
  if (!checkpoint_.is_made())
    return checkpoint_.files()[s.tensor->file].extent(s.begin, size_t(s.end - s.begin));
  const uint64_t row = row_size(*s.tensor);
  return checkpoint_.extent(*s.tensor, int64_t((s.begin - s.tensor->offset) / row),
                            int64_t((s.end - s.begin) / row));
}

File::Arrived RowReader::arrive(const Stretch& s, std::byte* to) const {
  if (!checkpoint_.is_made())
    return checkpoint_.files()[s.tensor->file].read_extent(s.begin, size_t(s.end - s.begin), to,
                                                           s.tensor->name);
  const uint64_t row = row_size(*s.tensor);
  return checkpoint_.read_extent(*s.tensor, int64_t((s.begin - s.tensor->offset) / row),
                                 int64_t((s.end - s.begin) / row), to);
}

RowReader::Cost RowReader::found() const {
  Cost cost;
  for (const Stretch& s : stretches_) {
    const File::Extent all = extent(s);
    cost.moved += all.bytes;
    cost.memory += all.room;
  }
  cost.requests = int64_t(stretches_.size());
  return cost;
}

std::span<const std::byte* const> RowReader::read(std::span<const StoredRow> wanted,
                                                  size_t bridge) {
  find(wanted, bridge);
  reserve(found().memory);
  pointers_.resize(wanted.size());
  moved_ = 0;
  std::byte* to = memory_;
  for (const Stretch& s : stretches_) {
    const File::Arrived arrived = arrive(s, to);
    moved_ += arrived.bytes;
    for (const Place& p : std::span(places_).subspan(s.first, s.count))
      pointers_[p.wanted] = arrived.at + (p.begin - s.begin);
    to += extent(s).room;
  }
  return pointers_;
}

RowReader::Cost RowReader::cost(std::span<const StoredRow> wanted, size_t bridge) {
  find(wanted, bridge);
  return found();
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
