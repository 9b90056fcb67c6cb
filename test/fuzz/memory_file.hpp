// A file that exists in memory only, for readers that want a path.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace hydrant::test {

class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }

  void fill(const uint8_t* data, size_t size) {
    const bool done =
        ::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, data, size, 0) == ssize_t(size);
    if (!done) std::abort();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace hydrant::test
