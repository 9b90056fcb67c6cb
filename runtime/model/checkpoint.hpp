// The tensors of a model's files, and reading their rows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.hpp"
#include "runtime/base/file.hpp"

namespace hydrant {

// Where a file keeps a tensor. The extent has been checked: it lies inside the file, overlaps no
// other tensor and holds exactly what the type and the shape ask for.
struct StoredTensor {
  std::string name;
  std::optional<DType> dtype;     // none: a type that no weight may have (masks, step counters)
  std::string type_name;          // as the file calls it
  std::vector<int64_t> shape;     // row-major: the last extent is contiguous
  int64_t rows = 1, columns = 1;  // columns: the last extent; rows: the product of the others
  size_t file = 0;                // which of the checkpoint's files
  uint64_t offset = 0, bytes = 0;
};

// Computes rows [first, first + count) of a tensor as they would stand in a file. Called from
// several threads.
using MakeRows =
    std::function<void(const StoredTensor&, int64_t first, int64_t count, std::byte* to)>;

// Read-only and immutable; reading is allowed from several threads. Nothing is read until it is
// asked for, and nothing is kept.
class Checkpoint {
 public:
  Checkpoint() = default;
  // Throws bad_file when a name occurs twice.
  Checkpoint(std::vector<File> files, std::vector<StoredTensor> tensors, std::string hole = "");

  // Tensors whose rows are computed when they are read; they are laid out as in a file of their
  // own, and what reading takes is told for that file when it is read past the page cache.
  Checkpoint(std::string name, std::vector<StoredTensor> tensors, MakeRows make);

  bool is_made() const { return bool(make_); }
  uint64_t made_bytes() const { return made_bytes_; }  // of that file
  bool is_readable() const { return is_made() || !files_.empty(); }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // by name, ascending
  const std::vector<File>& files() const { return files_; }
  const StoredTensor* find(std::string_view name) const;  // null: there is none
  const std::string& path_of(const StoredTensor& tensor) const;
  uint64_t bytes() const;  // of all tensors
  // Where a file has bytes that belong to no tensor although its format allows none, as a message;
  // empty: nowhere.
  const std::string& hole() const { return hole_; }

  // Rows [first, first + count) as they stand in the file; the tensor must have a dtype.
  void read_rows(const StoredTensor& tensor, int64_t first, int64_t count, std::byte* to) const;

  // The same tensors, of files opened anew (File::reopened): for reading them again and again past
  // the page cache. Tensors of either may be read through the other.
  Checkpoint reopened(Caching caching) const;
  // What reading these rows by read_extent moves, and that reading (file.hpp).
  File::Extent extent(const StoredTensor& tensor, int64_t first, int64_t count) const;
  File::Arrived read_extent(const StoredTensor& tensor, int64_t first, int64_t count,
                            std::byte* to) const;

 private:
  std::vector<File> files_;
  std::vector<StoredTensor> tensors_;
  std::string hole_;
  std::string made_name_;
  MakeRows make_;
  uint64_t made_bytes_ = 0;
};

std::string shape_text(const std::vector<int64_t>& shape);  // "[16, 64]"

// A name out of a file, fit for a one-line message: control characters and bytes beyond ASCII
// become '?', and what is longer than 100 bytes is cut.
std::string printable(std::string_view name);

}  // namespace hydrant
