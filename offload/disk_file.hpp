// A file for what does not fit into memory: it has no name, and is gone when its owner is, however
// the process ends.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "offload/cache_offload.hpp"

namespace hydrant {

// Borders and memory of direct requests lie on multiples of File::kBlock.
struct DiskRequest {
  bool write = false;
  uint64_t offset = 0;
  std::byte* data = nullptr;
  size_t bytes = 0;
  // Filled in: how much was moved before the system said so. error 0 and less than `bytes`: the
  // file ends there.
  size_t moved = 0;
  int error = 0;

  bool done() const { return moved == bytes; }
};

class DiskFile {
 public:
  virtual ~DiskFile() = default;
  // Does all of them, several at a time, and returns when all are done or have failed.
  virtual void run(std::span<DiskRequest> requests) = 0;
};

// An open file, its whole space reserved.
class SpillFile {
 public:
  // Throws io, naming folder, bytes and what they are for, when it cannot be made or has not that
  // much space.
  SpillFile(const std::string& folder, uint64_t bytes, Caching caching,
            std::string_view what = "the cache");
  // Why no file can be made in the folder, in the system's words; "" if one can.
  static std::string trouble(const std::string& folder);
  SpillFile(SpillFile&& other) noexcept;
  SpillFile& operator=(SpillFile&&) = delete;
  ~SpillFile();
  int descriptor() const { return descriptor_; }
  bool is_direct() const { return direct_; }

 private:
  int descriptor_ = -1;
  bool direct_ = false;
};

std::unique_ptr<DiskFile> open_disk_file(SpillFile file, DiskEngine engine, int requests);

}  // namespace hydrant
