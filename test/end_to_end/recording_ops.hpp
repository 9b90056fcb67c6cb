// Operations that say what they touch, before they are done or instead of it.
#pragma once
#include <memory>
#include <string_view>

#include "runtime/device/ops.hpp"

namespace hydrant::test {

class Watch {
 public:
  virtual ~Watch() = default;
  virtual void begins(Stream& stream, std::string_view operation) = 0;
  // The operation that has begun on the stream.
  virtual void touches(Stream& stream, const void* at, size_t bytes, bool write) = 0;
};

// inner null: nothing is computed; runs of keys and values have run_scale times their least size.
std::unique_ptr<Ops> recording_ops(Watch& watch, Ops* inner = nullptr, size_t run_scale = 1);

}  // namespace hydrant::test
