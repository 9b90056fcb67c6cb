#include "runtime/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {

namespace {

// Throws bad_file unless it is a regular file.
struct stat about(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    fail(Fault::bad_file, "{}: not a regular file", path);
  return status;
}

// Opens past the page cache; -1 where the file system cannot (some say so only when they read).
int open_direct(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (descriptor < 0) return -1;
  alignas(File::kBlock) char block[File::kBlock];
  if (::pread(descriptor, block, sizeof block, 0) >= 0) return descriptor;
  ::close(descriptor);
  return -1;
}

}  // namespace

File::File(std::string path) : File() {  // from here on the destructor closes
  path_ = std::move(path);
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(Fault::bad_file, "{}: {}", path_, std::strerror(errno));
  remember();
}

void File::remember() {
  const struct stat status = about(descriptor_, path_);
  size_ = uint64_t(status.st_size);
  modified_ = status.st_mtim;
}

// What is read again and again may be written by others meanwhile.
void File::check_unchanged(const std::string& what) const {
  const struct stat now = about(descriptor_, path_);
  if (uint64_t(now.st_size) < size_)
    fail(Fault::io, "{}: {}: the file ends at byte {}, it had {} when opened", path_, what,
         uint64_t(now.st_size), size_);
  if (now.st_mtim.tv_sec != modified_.tv_sec || now.st_mtim.tv_nsec != modified_.tv_nsec)
    fail(Fault::io, "{}: {}: the file was changed after it was opened", path_, what);
}

File::File(int descriptor, std::string called) : File() {
  path_ = std::move(called);
  nameless_ = true;
  descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (descriptor_ < 0) fail(Fault::io, "{}: {}", path_, std::strerror(errno));
  remember();
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      nameless_(other.nameless_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      modified_(other.modified_),
      direct_(other.direct_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(nameless_, other.nameless_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(modified_, other.modified_);
  std::swap(direct_, other.direct_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string File::place() const {
  return nameless_ ? fmt::format("/proc/self/fd/{}", descriptor_) : path_;
}

File File::reopened(Caching caching) const {
  const int direct = caching == Caching::direct ? open_direct(place()) : -1;
  File again = direct < 0 ? File(place()) : File();
  again.path_ = path_;
  again.nameless_ = nameless_;
  if (direct >= 0) {
    again.descriptor_ = direct;
    again.direct_ = true;
  }
  const struct stat now = about(again.descriptor_, path_), then = about(descriptor_, path_);
  if (now.st_ino != then.st_ino || now.st_dev != then.st_dev)
    fail(Fault::bad_file, "{}: another file has taken its place", path_);
  again.size_ = size_;
  again.modified_ = modified_;
  return again;
}

File::Extent File::extent(uint64_t offset, size_t bytes) const {
  return direct_ ? direct_extent(size_, offset, bytes) : Extent{offset, bytes, bytes};
}

File::Extent File::direct_extent(uint64_t size, uint64_t offset, size_t bytes) {
  if (bytes == 0) return {offset, 0, 0};
  const uint64_t begin = offset / kBlock * kBlock;
  const uint64_t end = align_up(offset + bytes, uint64_t{kBlock});
  return {begin, size_t(std::min(end, size) - begin), size_t(end - begin)};
}

void File::read(uint64_t offset, void* to, size_t bytes, const std::string& what) const {
  ensure(!direct_, "{}: {} is read as if it were cached", path_, what);
  read_some(offset, to, bytes, bytes, what);
}

File::Arrived File::read_extent(uint64_t offset, size_t bytes, std::byte* to,
                                const std::string& what) const {
  const Extent all = extent(offset, bytes);
  const auto before = size_t(offset - all.offset);
  return {to + before, read_some(all.offset, to, all.room, before + bytes, what)};
}

// Returns how many were there, at least `least` of `bytes`.
size_t File::read_some(uint64_t offset, void* to, size_t bytes, size_t least,
                       const std::string& what) const {
  if (offset > size_ || least > size_ - offset)
    fail(Fault::bad_file, "{}: {} needs bytes {} to {}, the file has {}", path_, what, offset,
         offset + least, size_);
  size_t done = 0;
  while (done < least) {
    const ssize_t got =
        ::pread(descriptor_, static_cast<char*>(to) + done, bytes - done, off_t(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(Fault::io, "{}: reading {}: {}", path_, what, std::strerror(errno));
    done += size_t(got);
    if (got == 0 || (direct_ && done % kBlock != 0)) break;  // only the last block is cut
  }
  check_unchanged(what);
  ensure(done >= least, "{}: {}: {} bytes of {} came", path_, what, done, least);
  return done;
}

std::string read_text(const std::string& path, uint64_t limit) {
  const File file(path);
  if (file.size() > limit)
    fail(Fault::bad_file, "{}: {} bytes, more than the {} allowed for a file of this kind", path,
         file.size(), limit);
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size(), "the text");
  return text;
}

}  // namespace hydrant
