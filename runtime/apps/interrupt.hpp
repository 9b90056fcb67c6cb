// Ctrl-C: the first asks a run to end in good order, the second ends the process.
#pragma once

namespace hydrant {

inline constexpr int kInterrupted = 130;  // exit code

// From here on SIGINT and SIGTERM set a flag while an Interruptible lives, and end the process with
// exit code 130 and, unless `quiet`, one line on standard error otherwise; SIGPIPE is ignored, so
// that a closed output is a write error like others.
void handle_signals(bool quiet = false);
bool interrupted();

struct Interrupted {};  // thrown by work that is left half done because of it

// While one lives, the code that made it asks interrupted() again and again. They may be nested.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};

}  // namespace hydrant
