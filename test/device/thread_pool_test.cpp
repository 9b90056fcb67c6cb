#include "runtime/backends/cpu/thread_pool.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace hydrant::cpu;

namespace {

// A signal that keeps the thread which gets it from running on, as a scheduler would.
std::atomic<bool> held{false}, released{false};
void hold(int) {
  held = true;
  while (!released) sched_yield();
}

}  // namespace

TEST_CASE("every member runs a job exactly once, and all have when run returns") {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.size() == threads);
    std::vector<int> calls(size_t(threads), 0);  // plain ints: the join must publish them
    const int rounds = 3000;
    for (int i = 0; i < rounds; i++) pool.run([&](int member) { calls[size_t(member)]++; });
    for (const int c : calls) CHECK(c == rounds);
  }
}

TEST_CASE("members that have gone to sleep wake for the next job") {
  ThreadPool pool(2);
  int sum = 0;
  for (int i = 0; i < 5; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // far longer than the spinning
    std::atomic<int> calls{0};
    pool.run([&](int) { calls++; });
    sum += calls;
  }
  CHECK(sum == 10);
}

TEST_CASE("the caller sleeps until a slow member is done") {
  ThreadPool pool(3);
  bool done = false;
  pool.run([&](int member) {
    if (member != 2) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    done = true;
  });
  CHECK(done);
}

TEST_CASE("more members than cores on a busy machine: every part of every job is done once") {
  const int cores = usable_cores();
  std::vector<std::jthread> rivals;
  for (int i = 0; i < 2 * cores; i++)
    rivals.emplace_back([](const std::stop_token& quit) {
      while (!quit.stop_requested()) continue;
    });
  for (const int threads : {2, cores, 4 * cores + 1}) {
    ThreadPool pool(threads);
    // plain numbers: a part done too late, or twice at a time, is a race and leaves its mark
    std::vector<int> calls(size_t(threads), 0), latest(size_t(threads), 0);
    for (int round = 1; round <= 1000; round++) {
      pool.run([&, round](int member) {
        calls[size_t(member)]++;
        latest[size_t(member)] = round;
      });
      REQUIRE(calls == std::vector<int>(size_t(threads), round));
      REQUIRE(latest == calls);
    }
  }
}

TEST_CASE("the caller does the part of a member that cannot run, and does not wait for it") {
  ThreadPool pool(2);
  std::vector<std::thread::id> doer(2);
  const auto note = [&](int member) { doer[size_t(member)] = std::this_thread::get_id(); };
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<pthread_t> worker{};
  do
    pool.run([&](int member) {
      note(member);
      if (member == 1) worker = pthread_self();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // time for both to come
    });
  while (doer[1] == caller);

  struct sigaction action {};
  action.sa_handler = hold;
  REQUIRE(sigaction(SIGUSR1, &action, nullptr) == 0);
  REQUIRE(pthread_kill(worker, SIGUSR1) == 0);
  // The worker is between two jobs, where it will stay. (Under the thread sanitizer a sleeper takes
  // a signal only after it has been woken.)
  while (!held) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!held) pool.run([](int) {});
  }
  int alone = 0;
  for (int i = 0; i < 100; i++) {
    doer.assign(2, {});
    pool.run(note);
    alone += doer == std::vector{caller, caller};
  }
  released = true;
  CHECK(alone == 100);
  int calls[2] = {};
  for (int i = 0; i < 100; i++) pool.run([&](int member) { calls[member]++; });
  CHECK(calls[0] == 100);
  CHECK(calls[1] == 100);
}

TEST_CASE("split covers a range with the same contiguous pieces every time") {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 3, 7, 100}) {
      std::vector<int> owner(size_t(count), -1);
      pool.split(count, [&](int64_t begin, int64_t end, int member) {
        for (int64_t i = begin; i < end; i++) owner[size_t(i)] = member;
      });
      for (int64_t i = 0; i < count; i++) {
        const int member = owner[size_t(i)];
        REQUIRE(member >= 0);
        CHECK(i >= count * member / threads);
        CHECK(i < count * (member + 1) / threads);
      }
    }
  }
}

TEST_CASE("each hands out every item once") {
  ThreadPool pool(3);
  for (int round = 0; round < 50; round++) {
    std::vector<std::atomic<int>> taken(101);
    pool.each(101, [&](int64_t i, int) { taken[size_t(i)]++; });
    for (const auto& t : taken) REQUIRE(t == 1);
  }
}

TEST_CASE("an exception of any member reaches the caller after the join, and the pool goes on") {
  ThreadPool pool(3);
  for (int thrower = 0; thrower < 3; thrower++) {
    std::atomic<int> finished{0};
    CHECK_THROWS_WITH(pool.run([&](int member) {
      if (member == thrower) throw std::runtime_error("from a member");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      finished++;
    }),
                      "from a member");
    CHECK(finished == 2);
  }
  std::atomic<int> calls{0};
  pool.run([&](int) { calls++; });
  CHECK(calls == 3);
}

TEST_CASE("usable cores: at least one, at most the processors of the machine") {
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= int(std::thread::hardware_concurrency()));
}
