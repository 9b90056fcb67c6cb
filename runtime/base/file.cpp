#include "runtime/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/error.hpp"

namespace hydrant {

File::File(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(Fault::bad_file, "{}: {}", path_, std::strerror(errno));
  struct stat about {};
  const int status = ::fstat(descriptor_, &about);
  if (status != 0 || !S_ISREG(about.st_mode)) {
    ::close(descriptor_);
    fail(Fault::bad_file, "{}: not a regular file", path_);
  }
  size_ = uint64_t(about.st_size);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::read(uint64_t offset, void* to, size_t bytes, const std::string& what) const {
  if (offset > size_ || bytes > size_ - offset)
    fail(Fault::bad_file, "{}: {} needs bytes {} to {}, the file has {}", path_, what, offset,
         offset + bytes, size_);
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, out, bytes, off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(Fault::io, "{}: reading {}: {}", path_, what, std::strerror(errno));
    if (got == 0)
      fail(Fault::bad_file, "{}: {}: the file ends at byte {}, it had {} when opened", path_, what,
           offset, size_);
    out += got;
    offset += uint64_t(got);
    bytes -= size_t(got);
  }
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
