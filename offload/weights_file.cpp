#include "offload/weights_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "offload/disk_file.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

constexpr int64_t kAtOnce = int64_t{4} << 20;  // bytes

void write_all(int descriptor, uint64_t offset, const std::byte* from, size_t bytes,
               const std::string& folder) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t wrote = ::pwrite(descriptor, from + done, bytes - done, off_t(offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      fail(Fault::io, "memory.folder: {}: writing synthetic weights: {}", folder,
           std::strerror(wrote < 0 ? errno : ENOSPC));
    done += size_t(wrote);
  }
}

}  // namespace

Checkpoint write_weights(const Checkpoint& made, const std::string& folder,
                         const LoadProgress& progress) {
  const uint64_t total = made.made_bytes();
  const SpillFile file(folder, total, Caching::cached, "synthetic weights");
  std::vector<StoredTensor> tensors = made.tensors();
  std::vector<std::byte> buffer;
  uint64_t done = 0;
  for (const StoredTensor& t : tensors) {
    const int64_t row = row_bytes(*t.dtype, t.columns), step = std::max(int64_t{1}, kAtOnce / row);
    for (int64_t first = 0; first < t.rows; first += step) {
      const int64_t rows = std::min(step, t.rows - first);
      buffer.resize(size_t(rows * row));
      made.read_rows(t, first, rows, buffer.data());
      write_all(file.descriptor(), t.offset + uint64_t(first * row), buffer.data(), buffer.size(),
                folder);
      done += buffer.size();
      if (progress) progress(done, total);
    }
  }
  // What is still on its way to the disk would be in the way of what reads it.
  if (::fdatasync(file.descriptor()) != 0)
    fail(Fault::io, "memory.folder: {}: writing synthetic weights: {}", folder,
         std::strerror(errno));
  if (progress) progress(total, total);
  ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  std::vector<File> files;
  files.emplace_back(file.descriptor(), folder + " (synthetic weights)");
  return Checkpoint(std::move(files), std::move(tensors));
}

}  // namespace hydrant
