// Fork-join over a fixed team of threads; the caller is member 0.
#pragma once
#include <cstdint>
#include <memory>

namespace hydrant::cpu {

// Cores this process may use: affinity mask, then the cgroup quota rounded down, at least 1.
int usable_cores();

// run() calls job(member) once for every member and returns when all are done. Each member has a
// thread of its own, but the caller does the part of one whose thread has not begun when its own is
// done: on a busy machine the pool is never slower than one thread by more than a part begun and
// interrupted. So parts must not wait for each other. Members wait by spinning for at most ~100 us,
// less where that was of no use, and then sleep; they never spin when there are more members than
// usable cores. An exception in a member is rethrown to the caller after the join. Not reentrant;
// one caller at a time.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  int size() const;

  template <class Job>
  void run(const Job& job) {
    run_erased([](const void* j, int member) { (*static_cast<const Job*>(j))(member); }, &job);
  }
  // Splits [0, count) into one contiguous piece per member; always the same pieces for the same
  // count and size.
  template <class Body>
  void split(int64_t count, const Body& body) {
    const int64_t members = size();
    run([&](int m) {
      const int64_t begin = count * m / members, end = count * (m + 1) / members;
      if (begin < end) body(begin, end, m);
    });
  }
  // Hands out items 0, 1, ... one at a time to whoever is free: for uneven items whose results do
  // not depend on who runs them.
  template <class Body>
  void each(int64_t count, const Body& body) {
    reset_counter();
    run([&](int m) {
      for (int64_t i; (i = next_item()) < count;) body(i, m);
    });
  }

 private:
  using Erased = void (*)(const void* job, int member);
  void run_erased(Erased call, const void* job);
  void reset_counter();
  int64_t next_item();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hydrant::cpu
