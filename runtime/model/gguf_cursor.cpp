#include "runtime/model/gguf_cursor.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace hydrant {
namespace {

constexpr uint64_t kWindow = uint64_t{256} << 10;

}  // namespace

size_t least_bytes(GgufType type) {
  constexpr std::array<size_t, kGgufTypes> kBytes{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return kBytes.at(size_t(type));
}

void GgufCursor::bytes(void* to, size_t count, const std::string& what) {
  if (count > remaining())
    refuse("the file ends within {}: {} bytes are needed at {}, {} are left", what, count,
           position_, remaining());
  auto* out = static_cast<std::byte*>(to);
  while (count > 0) {
    if (position_ < window_begin_ || position_ >= window_begin_ + window_.size()) {
      window_.resize(size_t(std::min(kWindow, remaining())));
      window_begin_ = position_;
      file_.read(position_, window_.data(), window_.size(), what);
    }
    const auto from = size_t(position_ - window_begin_);
    const size_t part = std::min(count, window_.size() - from);
    std::memcpy(out, window_.data() + from, part);
    out += part;
    position_ += part;
    count -= part;
  }
}

void GgufCursor::skip(uint64_t count, const std::string& what) {
  if (count > remaining())
    refuse("the file ends within {}: {} bytes are needed at {}, {} are left", what, count,
           position_, remaining());
  position_ += count;
}

std::string GgufCursor::text(const std::string& what) {
  std::string value(size_t(count(1, what)), '\0');
  bytes(value.data(), value.size(), what);
  return value;
}

GgufType GgufCursor::type(const std::string& what) {
  const auto value = number<uint32_t>(what);
  if (value >= kGgufTypes) refuse("{} has type {}, known are 0 to {}", what, value, kGgufTypes - 1);
  return GgufType(value);
}

uint64_t GgufCursor::count(size_t each, const std::string& what) {
  const auto value = number<uint64_t>(what);
  if (value > remaining() / each)
    refuse("{} counts {}, but only {} bytes of the file are left", what, value, remaining());
  return value;
}

}  // namespace hydrant
