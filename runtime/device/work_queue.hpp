// Work in order, beside other work: what a backend's streams are made of where a host thread has to
// drive them.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/device/stream.hpp"

namespace hydrant {

// Opens once, with the failure of the queue that opened it (null: none).
class Latch {
 public:
  virtual ~Latch() = default;
  void open(std::exception_ptr failure);
  std::exception_ptr opened() const;  // blocks until it is open
  // Blocks until all that the queue did before is done, which is later where a queue only hands its
  // work to a device. What every backend's streams can wait for, whoever has recorded.
  virtual std::exception_ptr done() const { return opened(); }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable opened_;
  bool open_ = false;
  std::exception_ptr failure_;
};

// The events of all backends: the latch of the latest record; null when there is nothing to wait
// for.
class QueueEvent final : public Event {
 public:
  void set(std::shared_ptr<Latch> latch);
  std::shared_ptr<Latch> latch() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Latch> latch_;
};

// With a thread of its own, calls only enqueue, and the destructor lets the queue run empty.
// Inline, work is done when its call returns: nothing is allocated or copied, and wait() blocks the
// caller. Failures are sticky as stream.hpp says.
class WorkQueue {
 public:
  explicit WorkQueue(bool inline_work);
  ~WorkQueue();

  // Does work(args); a thread does it with its own copy of both.
  template <class Args, class Work>
  void enqueue(const Args& args, const Work& work) {
    if (inline_)
      attempt(args, work);
    else
      push([this, args, work] { attempt(args, work); });
  }
  void record(QueueEvent& event);
  // By a latch that tells more than that this queue has come to it.
  void record(QueueEvent& event, std::shared_ptr<Latch> latch);
  void wait(const QueueEvent& event);
  void synchronize();

 private:
  template <class Args, class Work>
  void attempt(const Args& args, const Work& work) {
    if (failure_) return;
    try {
      work(args);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void push(std::function<void()> task);
  void serve();

  const bool inline_;
  std::exception_ptr failure_;  // only touched by the thread that does the work
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // null: the end
  std::thread thread_;
};

}  // namespace hydrant
