// Whether a run is to end before its rows do.
#pragma once
#include "runtime/engine/generator.hpp"

namespace hydrant {

// A yes stays: what has been left out of a step is not made up for.
class Cancellation {
 public:
  explicit Cancellation(const Listener& listener) : listener_(listener) {}
  bool ask() { return said_ = said_ || (listener_.cancelled && listener_.cancelled()); }
  bool said() const { return said_; }

 private:
  const Listener& listener_;
  bool said_ = false;
};

}  // namespace hydrant
