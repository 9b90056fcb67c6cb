#include "runtime/backends/cpu/thread_pool.hpp"

#include <immintrin.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

// Waking a sleeper costs 30 us and more, the gap between two operations of a decode step is below
// that: a wait that is over soon must not sleep, one that is not must not burn a core.
constexpr auto kSpin = std::chrono::microseconds(100);

void wait_while(const std::atomic<uint32_t>& value, uint32_t old, bool spin) {
  if (spin) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 16; i++) {
        if (value.load(std::memory_order_acquire) != old) return;
        _mm_pause();
      }
    } while (std::chrono::steady_clock::now() < until);
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

struct ThreadPool::State {
  int size = 1;
  bool spin = false;
  Erased call = nullptr;
  const void* job = nullptr;
  bool stop = false;
  std::mutex failure_mutex;
  std::exception_ptr failure;
  std::vector<std::thread> workers;
  // each on its own cache line: the caller writes one while the members write the other
  alignas(64) std::atomic<uint32_t> epoch{0};    // one step per job
  alignas(64) std::atomic<uint32_t> pending{0};  // members other than the caller still at work
  alignas(64) std::atomic<int64_t> item{0};

  void call_job(int member) {
    try {
      call(job, member);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  }
  void publish() {
    epoch.fetch_add(1, std::memory_order_release);
    epoch.notify_all();  // enters the kernel only when someone sleeps
  }
  void serve(int member) {
    for (uint32_t seen = 0;; seen++) {
      wait_while(epoch, seen, spin);
      if (stop) return;
      call_job(member);
      if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) pending.notify_all();
    }
  }
  void shut_down() {
    stop = true;
    publish();
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  ensure(threads >= 1, "a pool of {} threads", threads);
  state_->size = threads;
  state_->spin = threads <= usable_cores();
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
  s.publish();
  s.call_job(0);
  for (uint32_t left; (left = s.pending.load(std::memory_order_acquire)) != 0;)
    wait_while(s.pending, left, s.spin);
  if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
}

void ThreadPool::reset_counter() { state_->item.store(0, std::memory_order_relaxed); }
int64_t ThreadPool::next_item() { return state_->item.fetch_add(1, std::memory_order_relaxed); }

}  // namespace hydrant::cpu
