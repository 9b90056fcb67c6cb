#include "runtime/model/upload.hpp"

#include "runtime/device/copied_memory.hpp"

namespace hydrant {

std::byte* Upload::room(std::byte* to, size_t bytes, Memory kind) {
  to_ = nullptr;
  if (kind != Memory::device || device_.is_host()) return to;
  to_ = to;
  bytes_ = bytes;
  if (bytes > buffer_.bytes()) {
    buffer_ = {};
    buffer_ = allocate_for_copies(device_, bytes, "weights on their way to the device");
  }
  return static_cast<std::byte*>(buffer_.data());
}

void Upload::finish() {
  if (!to_) return;
  if (!stream_) stream_ = device_.make_stream("load", /*inline_work=*/true);
  stream_->copy(to_, buffer_.data(), bytes_);
  stream_->synchronize();
}

}  // namespace hydrant
