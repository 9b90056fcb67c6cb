// Ends the process when a test hangs.
#pragma once
#include <unistd.h>

namespace hydrant::test {

class Watchdog {
 public:
  explicit Watchdog(unsigned seconds) { ::alarm(seconds); }
  ~Watchdog() { ::alarm(0); }
};

}  // namespace hydrant::test
