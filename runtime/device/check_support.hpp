// The vocabulary of the argument checks. Internal to runtime/device.
#pragma once
#include <span>
#include <string_view>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant {

// Puts the operation's name before every complaint.
class Checker {
 public:
  explicit Checker(std::string_view op) : op_(op) {}

  template <class... Args>
  void holds(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) complain(fmt::format(format, std::forward<Args>(args)...));
  }
  // Given (an empty tensor may have no memory), of this type and this rank or shape.
  void rank(std::string_view argument, const ConstTensor& t, DType dtype, int rank) const;
  void tensor(std::string_view argument, const ConstTensor& t, DType dtype,
              const Shape& expected) const;
  // The same, or not given at all.
  void optional(std::string_view argument, const ConstTensor& t, DType dtype,
                const Shape& expected) const;
  // Two arguments that share no byte.
  void apart(std::string_view a, const ConstTensor& first, std::string_view b,
             const ConstTensor& second) const;
  // Exactly the same memory, or no byte of it.
  void same_or_apart(std::string_view a, const ConstTensor& first, std::string_view b,
                     const ConstTensor& second) const;

  void heads(const HeadShape& shape) const;
  void rotary(std::string_view argument, const Rotary& rotary, int32_t head_dim,
              int64_t least_places) const;
  void kv_dtype(DType dtype) const;
  void cache(std::string_view argument, const CacheView& view) const;
  // A row's tokens lie in [0, tokens), behind those of the segment before it.
  void segment(const Segment& segment, int32_t& next_token, int64_t tokens) const;
  // Decode: one token per row, places of the cache, landing rows inside its slots.
  void decode_segments(std::span<const Segment> segments, int64_t tokens,
                       const CacheView& view) const;
  void prompt_segments(std::span<const PromptSegment> segments, int64_t tokens,
                       const HeadShape& shape) const;
  void runs(std::string_view argument, const KvRuns& runs, int64_t slots, int32_t kv_heads) const;

 private:
  [[noreturn]] void complain(const std::string& what) const;
  std::string_view op_;
};

}  // namespace hydrant
