#include "offload/disk_file.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "offload/disk_threads.hpp"
#include "offload/disk_uring.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// Opens a file without a name; where the file system has no such thing, one whose name is taken
// away at once.
int open_nameless(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return descriptor;
  std::string path = folder + "/hydrant-XXXXXX";
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

// Some file systems say that they have no direct requests only when they get one.
bool make_direct(int descriptor) {
  if (::fcntl(descriptor, F_SETFL, O_RDWR | O_DIRECT) != 0) return false;
  alignas(File::kBlock) char block[File::kBlock];
  if (::pread(descriptor, block, sizeof block, 0) >= 0) return true;
  ::fcntl(descriptor, F_SETFL, O_RDWR);
  return false;
}

uint64_t free_bytes(const std::string& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return 0;
  return uint64_t{status.f_bavail} * status.f_frsize;
}

}  // namespace

SpillFile::SpillFile(const std::string& folder, uint64_t bytes, Caching caching,
                     std::string_view what)
    : descriptor_(open_nameless(folder)) {
  if (descriptor_ < 0)
    fail(Fault::io, "memory.folder: {}: no file can be made there: {}", folder,
         std::strerror(errno));
  // A reservation that has to fail would first take all that is free.
  const int error =
      bytes > free_bytes(folder) ? ENOSPC : ::posix_fallocate(descriptor_, 0, off_t(bytes));
  if (error != 0) {
    ::close(descriptor_);
    fail(Fault::io, "memory.folder: {}: {} bytes for {} cannot be reserved, {} are free: {}",
         folder, bytes, what, free_bytes(folder), std::strerror(error));
  }
  direct_ = caching == Caching::direct && make_direct(descriptor_);
}

std::string SpillFile::trouble(const std::string& folder) {
  const int descriptor = open_nameless(folder);
  if (descriptor < 0) return std::strerror(errno);
  ::close(descriptor);
  return "";
}

SpillFile::SpillFile(SpillFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), direct_(other.direct_) {}

SpillFile::~SpillFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::unique_ptr<DiskFile> open_disk_file(SpillFile file, DiskEngine engine, int requests) {
  if (engine == DiskEngine::io_uring) try {
      return std::make_unique<DiskUring>(file, requests);
    } catch (const boost::system::system_error& e) {
      log::warning("the system does not permit io_uring ({}); threads read and write the cache",
                   e.code().message());
    }
  return std::make_unique<DiskThreads>(std::move(file), requests);
}

}  // namespace hydrant
