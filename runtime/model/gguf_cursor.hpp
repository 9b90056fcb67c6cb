// Walks the head of a GGUF file, field by field, through a small window.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"

namespace hydrant {

// The types of metadata values, numbered as in the file.
enum class GgufType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  flag,
  text,
  array,
  u64,
  i64,
  f64
};
inline constexpr uint32_t kGgufTypes = 13;
// Least bytes a value takes in the file.
size_t least_bytes(GgufType type);

// Every function throws bad_file, naming `what`, when the file ends before. The file must outlive
// the cursor.
class GgufCursor {
 public:
  explicit GgufCursor(const File& file) : file_(file) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return file_.size() - position_; }

  // Throws bad_file; the file's name stands before the text.
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(Fault::bad_file, "{}: {}", file_.path(), fmt::format(format, std::forward<Args>(args)...));
  }

  void bytes(void* to, size_t count, const std::string& what);
  void skip(uint64_t count, const std::string& what);
  template <class T>
  T number(const std::string& what) {
    T value;
    bytes(&value, sizeof value, what);
    return value;
  }
  std::string text(const std::string& what);
  GgufType type(const std::string& what);
  // A count of things that take at least `each` bytes: refused when the rest of the file is
  // smaller.
  uint64_t count(size_t each, const std::string& what);

 private:
  const File& file_;
  uint64_t position_ = 0;
  std::vector<std::byte> window_;  // of the file, from window_begin_
  uint64_t window_begin_ = 0;
};

}  // namespace hydrant
