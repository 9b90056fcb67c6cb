#include "runtime/backends/cpu/host_stream.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "test/support/random.hpp"

using namespace hydrant;
using cpu::HostEvent;
using cpu::HostStream;

namespace {

template <class Work>
void enqueue(HostStream& stream, const Work& work) {
  stream.enqueue(0, [work](int) { work(); });
}
void fail_with(HostStream& stream, const char* what) {
  enqueue(stream, [what] { throw std::runtime_error(what); });
}
// A latch that the test opens when it likes.
struct Gate {
  Latch latch;
  void open() { latch.open(nullptr); }
  void hold(HostStream& stream) {
    enqueue(stream, [this] { latch.opened(); });
  }
};

}  // namespace

TEST_CASE("work runs in the order it was enqueued, also when the stream ends") {
  for (const bool inline_work : {false, true}) {
    std::vector<int> order;
    {
      HostStream stream("compute", inline_work);
      CHECK(stream.lane() == "compute");
      for (int i = 0; i < 1000; i++) enqueue(stream, [&order, i] { order.push_back(i); });
    }
    std::vector<int> expected(1000);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(order == expected);
  }
}

TEST_CASE("inline work is done when its call returns, in the calling thread") {
  HostStream stream("compute", true);
  std::thread::id ran;
  enqueue(stream, [&] { ran = std::this_thread::get_id(); });
  CHECK(ran == std::this_thread::get_id());
}

TEST_CASE("threads work on copies of their arguments, inline work on the caller's own") {
  for (const bool inline_work : {false, true}) {
    HostStream stream("compute", inline_work);
    Gate gate;
    if (!inline_work) gate.hold(stream);
    int argument = 1, seen = 0;
    const int* address = nullptr;
    stream.enqueue(argument, [&](const int& a) { seen = a, address = &a; });
    argument = 2;
    gate.open();
    stream.synchronize();
    CHECK(seen == 1);
    CHECK((address == &argument) == inline_work);
  }
}

TEST_CASE("copy moves bytes in order with other work") {
  for (const bool inline_work : {false, true}) {
    HostStream stream("load", inline_work);
    std::vector<int> a{1, 2, 3}, b(3), c(3);
    stream.copy(b.data(), a.data(), sizeof(int) * 3);
    enqueue(stream, [&] { b[1] = 7; });
    stream.copy(c.data(), b.data(), sizeof(int) * 3);
    stream.copy(nullptr, nullptr, 0);
    stream.synchronize();
    CHECK(c == std::vector<int>{1, 7, 3});
  }
}

TEST_CASE("the host's own work is done in order, and its failure is the stream's") {
  for (const bool inline_work : {false, true}) {
    HostStream stream("load", inline_work);
    std::vector<int> a{1, 2, 3}, b(3);
    stream.fill(a.data(), sizeof(int) * 3, [&] { a[1] = 7; });
    stream.copy(b.data(), a.data(), sizeof(int) * 3);
    stream.fill(a.data(), sizeof(int) * 3, [&] { a[1] = 9; });
    stream.synchronize();
    CHECK(b == std::vector<int>{1, 7, 3});
    stream.fill(nullptr, 0, [] { throw std::runtime_error("no more"); });
    stream.fill(a.data(), sizeof(int) * 3, [&] { a[1] = 5; });
    CHECK_THROWS_WITH(stream.synchronize(), "no more");
    CHECK(a[1] == 9);
  }
}

TEST_CASE("a wait names the record made before it") {
  HostStream producer("load", false), consumer("compute", false);
  HostEvent event;
  consumer.wait(event);  // never recorded: returns at once
  consumer.synchronize();

  Gate first, second;
  std::atomic<bool> saw{false};
  first.hold(producer);
  producer.record(event);
  consumer.wait(event);
  enqueue(consumer, [&] { saw = true; });
  second.hold(producer);
  producer.record(event);  // moves the event; the wait above keeps the first record
  CHECK_FALSE(saw);
  first.open();
  consumer.synchronize();  // would hang if it waited for the second record
  CHECK(saw);
  second.open();
  producer.synchronize();
}

TEST_CASE("an event outlived by its waits still fires") {
  HostStream producer("load", false), consumer("compute", false);
  Gate gate;
  std::atomic<bool> saw{false};
  gate.hold(producer);
  {
    HostEvent event;
    producer.record(event);
    consumer.wait(event);
  }
  enqueue(consumer, [&] { saw = true; });
  CHECK_FALSE(saw);
  gate.open();
  consumer.synchronize();
  CHECK(saw);
}

TEST_CASE("an inline stream waits in the calling thread") {
  HostStream producer("load", false), consumer("compute", true);
  HostEvent event;
  int value = 0;
  enqueue(producer, [&] { value = 5; });
  producer.record(event);
  consumer.wait(event);
  CHECK(value == 5);
}

TEST_CASE("a failure is sticky, and synchronize throws the first one each time") {
  for (const bool inline_work : {false, true}) {
    HostStream stream("compute", inline_work);
    bool ran = false;
    fail_with(stream, "first");
    fail_with(stream, "second");
    enqueue(stream, [&] { ran = true; });
    CHECK_THROWS_WITH(stream.synchronize(), "first");
    CHECK_THROWS_WITH(stream.synchronize(), "first");
    CHECK_FALSE(ran);
  }
}

TEST_CASE("records of a failed stream fire and fail those who wait for them") {
  for (const bool inline_producer : {false, true})
    for (const bool inline_consumer : {false, true}) {
      HostStream producer("load", inline_producer), consumer("compute", inline_consumer);
      HostEvent good, bad;
      bool ran_before = false, ran_after = false;
      producer.record(good);
      fail_with(producer, "disk gone");
      producer.record(bad);
      consumer.wait(good);
      enqueue(consumer, [&] { ran_before = true; });
      consumer.wait(bad);
      enqueue(consumer, [&] { ran_after = true; });
      CHECK_THROWS_WITH(consumer.synchronize(), "disk gone");
      CHECK(ran_before);
      CHECK_FALSE(ran_after);
      CHECK_THROWS_WITH(producer.synchronize(), "disk gone");
    }
}

// A random program over shared cells: each cell is touched by one lane at a time, handed over by
// events. Any number of lanes, more than there are cores, must compute what one lane computes; the
// thread sanitizer sees every hand-over that an event does not order.
TEST_CASE("lanes ordered by events agree with a single lane") {
  constexpr int kCells = 6, kSteps = 400;
  const auto run = [&](int lanes, bool first_inline) {
    test::Random random(7);
    std::vector<uint64_t> cells(kCells, 1);
    std::vector<HostEvent> touched(kCells);
    std::vector<std::unique_ptr<HostStream>> streams;
    for (int i = 0; i < lanes; i++)
      streams.push_back(std::make_unique<HostStream>("lane", first_inline && i == 0));
    for (int step = 0; step < kSteps; step++) {
      const auto to = size_t(random.below(kCells)), from = size_t(random.below(kCells));
      const uint64_t salt = random.bits();
      HostStream& stream = *streams[size_t(step % lanes)];
      stream.wait(touched[to]);
      stream.wait(touched[from]);
      enqueue(stream,
              [&cells, to, from, salt] { cells[to] = cells[to] * 31 + cells[from] + salt; });
      stream.record(touched[to]);
      stream.record(touched[from]);
    }
    for (const auto& stream : streams) stream->synchronize();
    return cells;
  };
  const auto expected = run(1, true);
  for (int lanes = 1; lanes <= 5; lanes++)
    for (const bool first_inline : {false, true}) CHECK(run(lanes, first_inline) == expected);
}
