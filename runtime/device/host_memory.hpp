// Memory of the host, refused in words instead of by the kernel's OOM killer.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/device/buffer.hpp"

namespace hydrant {

// Bytes this process can still use: what the system has free or can free at once, cut by the limits
// of its memory cgroups. `root` stands before /proc and /sys.
size_t available_memory(const std::string& root = "");

// Maps memory whose pages are taken on first use. Large blocks lie on 2 MiB borders and ask for
// huge pages: reading weights through small ones costs a third of the bandwidth.
class HostMemory {
 public:
  // Throws out_of_memory when the bytes, with those promised before and not yet used, cannot be
  // there. Buffers may outlive this object.
  Buffer allocate(Memory memory, size_t bytes, std::string_view what);
  size_t available() const;  // beside what has been promised, within the address space

 private:
  std::shared_ptr<std::atomic<size_t>> promised_ = std::make_shared<std::atomic<size_t>>(0);
};

}  // namespace hydrant
