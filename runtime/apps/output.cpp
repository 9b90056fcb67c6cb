#include "runtime/apps/output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

void write_all(int descriptor, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(Fault::io, "{}: cannot write: {}", name, std::strerror(errno));
    bytes.remove_prefix(size_t(done));
  }
}

bool is_special(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode);
}

}  // namespace

Output::Output(const std::string& path, bool emptied)
    : name_(path.empty() ? "standard output" : path) {
  if (path.empty()) {
    descriptor_ = STDOUT_FILENO;
    return;
  }
  owned_ = true;
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    fail(Fault::io, "{}: cannot open for writing: {}", name_, std::strerror(errno));
  if (is_special(path)) return;
  try {
    // Two jobs in one file would mix their rows. File systems without locks are taken as they are.
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      fail(Fault::io, "{}: another process is writing it", name_);
    if (emptied && ::ftruncate(descriptor_, 0) != 0)
      fail(Fault::io, "{}: cannot empty: {}", name_, std::strerror(errno));
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

Output::~Output() {
  if (owned_ && descriptor_ >= 0) ::close(descriptor_);
}

void Output::write(std::string_view bytes) { write_all(descriptor_, bytes, name_); }

void Output::close() {
  if (!owned_ || descriptor_ < 0) return;
  const int status = ::close(descriptor_);
  descriptor_ = -1;
  if (status != 0) fail(Fault::io, "{}: cannot write: {}", name_, std::strerror(errno));
}

void write_file(const std::string& path, std::string_view content) {
  const std::string aside = is_special(path) ? path : fmt::format("{}.{}", path, ::getpid());
  Output out(aside, /*emptied=*/true);
  try {
    out.write(content);
    out.close();
  } catch (...) {
    if (aside != path) ::unlink(aside.c_str());
    throw;
  }
  if (aside != path && std::rename(aside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(aside.c_str());
    fail(Fault::io, "{}: cannot write: {}", path, std::strerror(error));
  }
}

void check_writable(const std::string& path, const std::string& key) {
  if (path.empty()) return;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  struct stat about {};
  const bool there = ::stat(path.c_str(), &about) == 0;
  const std::string& asked = there && !S_ISREG(about.st_mode) ? path : folder;
  if (there && S_ISDIR(about.st_mode)) fail(Fault::io, "{}: {} is a folder", key, path);
  if (::access(asked.c_str(), W_OK) != 0)
    fail(Fault::io, "{}: cannot write {}: {}", key, path, std::strerror(errno));
}

}  // namespace hydrant
