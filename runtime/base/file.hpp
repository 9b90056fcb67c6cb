// A file read at offsets with pread: no map of the whole file, so that resident memory means
// something.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace hydrant {

// Open for reading; move-only; const member functions may be called from several threads.
class File {
 public:
  explicit File(std::string path);  // throws bad_file: not there, not readable, not a regular file
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // Reads exactly [offset, offset + bytes). Throws bad_file when the file ends before (also when it
  // was cut after opening), io when the system reports an error. `what` names the part for the
  // message.
  void read(uint64_t offset, void* to, size_t bytes, const std::string& what) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// A small text file at once. Throws as File, and bad_file when it is larger than `limit` bytes.
std::string read_text(const std::string& path, uint64_t limit = uint64_t{256} << 20);

}  // namespace hydrant
