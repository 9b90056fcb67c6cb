// Ctrl-C: the first asks a run to end in good order, the second ends the process.
#pragma once

namespace hydrant {

inline constexpr int kInterrupted = 130;  // exit code

// From here on SIGINT and SIGTERM set a flag while an Interruptible lives, and end the process with
// exit code 130 and, unless `quiet`, one line on standard error otherwise; SIGPIPE and
// SIGXFSZ are ignored, so that a closed output and a limit on a file's size (ulimit -f) are write
// errors like others.
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
