// Files read at given places, not mapped: errors become exceptions instead of signals, and
// measured memory means something.
#pragma once
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace hydrant {

// direct: past the system's page cache, in whole blocks.
enum class Caching : uint8_t { cached, direct };

// Open for reading; move-only; const member functions may be called from several threads.
class File {
 public:
  static constexpr size_t kBlock = 4096;  // borders and memory of direct reads

  explicit File(std::string path);  // throws bad_file: not there, not readable, not a regular file
  // The file behind a descriptor, which stays its owner's: one that may have no name. `called`:
  // what messages call it.
  File(int descriptor, std::string called);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  // The same file opened once more. Where its file system has no direct reads it is cached after
  // all, and is_direct() tells. Throws bad_file when another file has taken its place.
  File reopened(Caching caching) const;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  bool is_direct() const { return direct_; }

  // Reads exactly [offset, offset + bytes). Throws bad_file when the file ends before, io when the
  // system reports an error or the file was changed after it was opened. `what` names the part for
  // the message. For cached files.
  void read(uint64_t offset, void* to, size_t bytes, const std::string& what) const;

  // What a read of [offset, offset + bytes) moves, and the room that it needs: whole blocks of a
  // direct file, but for its end.
  struct Extent {
    uint64_t offset;
    size_t bytes, room;
  };
  Extent extent(uint64_t offset, size_t bytes) const;
  static Extent direct_extent(uint64_t size, uint64_t offset, size_t bytes);  // of `size` bytes
  // As read(), but of the whole extent, to memory on a border of kBlock. `at` is where byte
  // `offset` lies.
  struct Arrived {
    const std::byte* at;
    size_t bytes;  // moved
  };
  Arrived read_extent(uint64_t offset, size_t bytes, std::byte* to, const std::string& what) const;

 private:
  File() = default;
  size_t read_some(uint64_t offset, void* to, size_t bytes, size_t least,
                   const std::string& what) const;

  void remember();
  void check_unchanged(const std::string& what) const;
  std::string place() const;  // what it is opened by

  std::string path_;
  bool nameless_ = false;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  timespec modified_{};
  bool direct_ = false;
};

// A small text file at once. Throws as File, and bad_file when it is larger than `limit` bytes.
std::string read_text(const std::string& path, uint64_t limit = uint64_t{256} << 20);

}  // namespace hydrant
