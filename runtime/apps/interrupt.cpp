#include "runtime/apps/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace hydrant {
namespace {

std::atomic<bool> asked_{false};
std::atomic<int> listening_{0};
// A signal handler may use nothing else.
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_signal(int) {
  if (listening_.load() == 0 || asked_.exchange(true)) ::_exit(kInterrupted);
}

}  // namespace

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

bool interrupted() { return asked_.load(); }

Interruptible::Interruptible() { listening_++; }
Interruptible::~Interruptible() { listening_--; }

}  // namespace hydrant
