// The way of loaded weights into memory that the host cannot write.
#pragma once
#include <cstddef>
#include <memory>

#include "runtime/device/device.hpp"

namespace hydrant {

// One thread's; keeps its memory from one call to the next.
class Upload {
 public:
  explicit Upload(Device& device) : device_(device) {}

  // Where to make what is to lie at `to`, in memory of that kind: there, if the host can write it.
  std::byte* room(std::byte* to, size_t bytes, Memory kind);
  // Brings what was made in the latest room to where it belongs.
  void finish();

 private:
  Device& device_;
  std::unique_ptr<Stream> stream_;  // from the first need on
  Buffer buffer_;
  std::byte* to_ = nullptr;  // null: it is there already
  size_t bytes_ = 0;
};

}  // namespace hydrant
