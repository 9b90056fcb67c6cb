#include "runtime/apps/output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

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

// A new file that takes another's name once it is whole, and goes if that does not come to pass.
class Replacement {
 public:
  Replacement(const std::string& target, const std::string& name) : target_(target), name_(name) {
    for (int i = 0; descriptor_ < 0 && (i == 0 || (errno == EEXIST && i < 100)); i++) {
      path_ = fmt::format("{}.{}.{}", target, ::getpid(), i);
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (descriptor_ < 0) failed();
  }
  ~Replacement() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  // Once.
  void take(std::string_view content) {
    struct stat about {};
    if (::stat(target_.c_str(), &about) == 0 && ::fchmod(descriptor_, about.st_mode & 07777) != 0)
      failed();
    write_all(descriptor_, content, name_);
    if (::fsync(descriptor_) != 0 || std::rename(path_.c_str(), target_.c_str()) != 0) failed();
    ::close(std::exchange(descriptor_, -1));
  }

 private:
  [[noreturn]] void failed() const {
    fail(Fault::io, "{}: cannot write: {}", name_, std::strerror(errno));
  }
  std::string target_, name_, path_;
  int descriptor_ = -1;
};

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
  // Two jobs in one file would mix their rows. File systems without locks are taken as they are.
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    fail(Fault::io, "{}: another process is writing it", name_);
  }
  full_ = emptied;
}

Output::~Output() {
  if (owned_ && descriptor_ >= 0) ::close(descriptor_);
}

void Output::empty() {
  if (std::exchange(full_, false) && ::ftruncate(descriptor_, 0) != 0)
    fail(Fault::io, "{}: cannot empty: {}", name_, std::strerror(errno));
}

void Output::write(std::string_view bytes) {
  empty();
  write_all(descriptor_, bytes, name_);
}

void Output::close() {
  if (!owned_ || descriptor_ < 0) return;
  empty();
  const int status = ::close(descriptor_);
  descriptor_ = -1;
  if (status != 0) fail(Fault::io, "{}: cannot write: {}", name_, std::strerror(errno));
}

void write_file(const std::string& path, std::string_view content) {
  if (is_special(path)) {
    Output out(path);
    out.write(content);
    return out.close();
  }
  std::error_code absent;
  const std::filesystem::path real = std::filesystem::canonical(path, absent);
  Replacement(absent ? path : real.string(), path).take(content);
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
