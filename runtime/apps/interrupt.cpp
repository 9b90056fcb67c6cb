#include "runtime/apps/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

namespace hydrant {
namespace {

std::atomic<bool> asked_{false}, tell_{true}, terminal_{false};
std::atomic<int> listening_{0};
// A signal handler may use nothing else.
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_signal(int) {
  const bool again = asked_.exchange(true);
  if (listening_.load() > 0 && !again) return;
  if (!again && tell_.load()) {
    const std::string_view line = "hydrant: interrupted\n", bar_gone = "\r\x1b[K";
    if (terminal_.load()) (void)!::write(STDERR_FILENO, bar_gone.data(), bar_gone.size());
    (void)!::write(STDERR_FILENO, line.data(), line.size());
  }
  ::_exit(kInterrupted);
}

}  // namespace

void handle_signals(bool quiet) {
  tell_ = !quiet;
  terminal_ = ::isatty(STDERR_FILENO) == 1;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
  ::sigaction(SIGXFSZ, &action, nullptr);
}

bool interrupted() { return asked_.load(); }

Interruptible::Interruptible() { listening_++; }
Interruptible::~Interruptible() { listening_--; }

}  // namespace hydrant
