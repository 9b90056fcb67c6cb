#include "runtime/backends/cpu/thread_pool.hpp"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/device/usable_cores.hpp"

namespace hydrant::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Looks at a number until over(number), for well below a microsecond.
template <class Over>
bool glance(const std::atomic<uint32_t>& number, const Over& over) {
  for (int i = 0; i < 16; i++) {
    if (over(number.load(std::memory_order_acquire))) return true;
    _mm_pause();
  }
  return false;
}

// Waits for numbers. Waking a sleeper costs 30 us and more, the gap between two operations of a
// decode step is below that: a wait that is over soon must not sleep, one that is not must not burn
// a core, least of all the one that the other side is waiting for. So whoever has spun in vain
// spins half as long the next time, and twice as long after a wait that was worth it. That serves
// lanes which copy beside the pool as well: never to spin while one does made a step 1.10 times as
// long with one row and 0.98 times with 16 (SmolLM2 from host memory, two cores, medians of five
// rounds).
class Watch {
 public:
  explicit Watch(bool spins) : spins_(spins) {}

  template <class Over>
  void wait(const std::atomic<uint32_t>& number, const Over& over) {
    if (spins_) {
      const bool in_time = spin(number, over);
      patience_ = in_time ? std::min(patience_ * 2, kMost) : std::max(patience_ / 2, kLeast);
      if (in_time) return;
    }
    for (uint32_t seen; !over(seen = number.load(std::memory_order_acquire));) number.wait(seen);
  }

 private:
  static constexpr Clock::duration kMost = std::chrono::microseconds(100);
  static constexpr Clock::duration kLeast = std::chrono::microseconds(2);

  template <class Over>
  bool spin(const std::atomic<uint32_t>& number, const Over& over) const {
    const auto until = Clock::now() + patience_;
    do
      if (glance(number, over)) return true;
    while (Clock::now() < until);
    return false;
  }

  bool spins_;
  Clock::duration patience_ = kMost;
};

}  // namespace

int usable_cores() { return hydrant::usable_cores(); }

struct ThreadPool::State {
  struct alignas(64) Part {
    std::atomic<uint32_t> taken{0};  // the latest job of which somebody has begun this part
  };

  const int size;
  const bool spin;
  Erased call = nullptr;  // null: the end
  const void* job = nullptr;
  std::mutex failure_mutex;
  std::exception_ptr failure;
  Watch join;
  std::vector<std::thread> workers;
  std::vector<Part> parts;  // [member]
  // each on its own cache line: the caller writes one while the members write the other
  alignas(64) std::atomic<uint32_t> epoch{0};    // one step per job
  alignas(64) std::atomic<uint32_t> pending{0};  // parts other than the caller's not yet done
  alignas(64) std::atomic<int64_t> item{0};

  explicit State(int threads)
      : size(threads), spin(threads <= usable_cores()), join(spin), parts(size_t(threads)) {}

  uint32_t publish() {
    const uint32_t now = epoch.fetch_add(1, std::memory_order_release) + 1;
    epoch.notify_all();  // enters the kernel only when someone sleeps
    return now;
  }
  // Whether the part of job `now` is the taker's to do. A job is not over before all its parts are
  // taken: one who comes late finds nothing to take, and no sign of the job is read before.
  bool take(int member, uint32_t now) {
    std::atomic<uint32_t>& taken = parts[size_t(member)].taken;
    uint32_t before = now - 1;
    return taken.load(std::memory_order_relaxed) == before &&
           taken.compare_exchange_strong(before, now);
  }
  void do_part(int member) {
    try {
      call(job, member);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  }
  void serve(int member) {
    Watch watch(spin);
    for (uint32_t seen = 0;;) {
      watch.wait(epoch, [seen](uint32_t now) { return now != seen; });
      seen = epoch.load(std::memory_order_acquire);
      if (!take(member, seen)) continue;
      if (!call) return;
      do_part(member);
      if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) pending.notify_all();
    }
  }
  void shut_down() {
    call = nullptr;
    publish();
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int threads) {
  ensure(threads >= 1, "a pool of {} threads", threads);
  state_ = std::make_unique<State>(threads);
  state_->workers.reserve(size_t(threads - 1));
  try {
    for (int member = 1; member < threads; member++)
      state_->workers.emplace_back([state = state_.get(), member] { state->serve(member); });
  } catch (...) {
    state_->shut_down();
    throw;
  }
}

ThreadPool::~ThreadPool() { state_->shut_down(); }

int ThreadPool::size() const { return state_->size; }

void ThreadPool::run_erased(Erased call, const void* job) {
  State& s = *state_;
  if (s.size == 1) return call(job, 0);
  s.call = call;
  s.job = job;
  s.pending.store(uint32_t(s.size - 1), std::memory_order_relaxed);
  const uint32_t now = s.publish();
  s.do_part(0);
  const auto done = [](uint32_t pending) { return pending == 0; };
  if (!glance(s.pending, done)) {
    // Who has not begun by now is asleep or has no core: sooner done here than waited for.
    for (int member = 1; member < s.size; member++)
      if (s.take(member, now)) {
        s.do_part(member);
        s.pending.fetch_sub(1, std::memory_order_acq_rel);
      }
    s.join.wait(s.pending, done);
  }
  if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
}

void ThreadPool::reset_counter() { state_->item.store(0, std::memory_order_relaxed); }
int64_t ThreadPool::next_item() { return state_->item.fetch_add(1, std::memory_order_relaxed); }

}  // namespace hydrant::cpu
