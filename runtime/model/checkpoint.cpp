#include "runtime/model/checkpoint.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

struct Bytes {
  uint64_t offset;
  size_t count;
};
Bytes bytes_of(const StoredTensor& tensor, int64_t first, int64_t count) {
  ensure(tensor.dtype && first >= 0 && count >= 0 && count <= tensor.rows - first,
         "rows {} to {} of {}", first, first + count, tensor.name);
  const auto row = uint64_t(row_bytes(*tensor.dtype, tensor.columns));
  return {tensor.offset + uint64_t(first) * row, size_t(uint64_t(count) * row)};
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string printable(std::string_view name) {
  constexpr size_t kLongest = 100;
  std::string text(name.substr(0, kLongest));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  if (name.size() > kLongest) text += "...";
  return text;
}

Checkpoint::Checkpoint(std::vector<File> files, std::vector<StoredTensor> tensors, std::string hole)
    : files_(std::move(files)), tensors_(std::move(tensors)), hole_(std::move(hole)) {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  for (size_t i = 1; i < tensors_.size(); i++) {
    const StoredTensor &a = tensors_[i - 1], &b = tensors_[i];
    if (a.name == b.name)
      fail(Fault::bad_file, "{}: tensor {} occurs twice, the other time in {}", path_of(b),
           printable(b.name), path_of(a));
  }
}

Checkpoint::Checkpoint(std::string name, std::vector<StoredTensor> tensors, MakeRows make)
    : Checkpoint({}, std::move(tensors)) {
  made_name_ = std::move(name);
  make_ = std::move(make);
  for (const StoredTensor& t : tensors_) made_bytes_ = std::max(made_bytes_, t.offset + t.bytes);
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto at = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const StoredTensor& t, std::string_view wanted) { return t.name < wanted; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

const std::string& Checkpoint::path_of(const StoredTensor& tensor) const {
  return is_made() ? made_name_ : files_.at(tensor.file).path();
}

uint64_t Checkpoint::bytes() const {
  uint64_t sum = 0;
  for (const StoredTensor& t : tensors_) sum += t.bytes;
  return sum;
}

void Checkpoint::read_rows(const StoredTensor& tensor, int64_t first, int64_t count,
                           std::byte* to) const {
  const Bytes at = bytes_of(tensor, first, count);
  if (is_made()) return make_(tensor, first, count, to);
  files_.at(tensor.file).read(at.offset, to, at.count, tensor.name);
}

Checkpoint Checkpoint::reopened(Caching caching) const {
  if (is_made()) return Checkpoint(made_name_, tensors_, make_);
  std::vector<File> files;
  for (const File& file : files_) files.push_back(file.reopened(caching));
  return Checkpoint(std::move(files), tensors_, hole_);
}

File::Extent Checkpoint::extent(const StoredTensor& tensor, int64_t first, int64_t count) const {
  const Bytes at = bytes_of(tensor, first, count);
  if (is_made()) return File::direct_extent(made_bytes_, at.offset, at.count);
  return files_.at(tensor.file).extent(at.offset, at.count);
}

File::Arrived Checkpoint::read_extent(const StoredTensor& tensor, int64_t first, int64_t count,
                                      std::byte* to) const {
  const Bytes at = bytes_of(tensor, first, count);
  if (is_made()) {
    make_(tensor, first, count, to);
    return {to, at.count};
  }
  return files_.at(tensor.file).read_extent(at.offset, at.count, to, tensor.name);
}

}  // namespace hydrant
