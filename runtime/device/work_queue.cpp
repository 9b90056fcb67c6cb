#include "runtime/device/work_queue.hpp"

namespace hydrant {

void Latch::open(std::exception_ptr failure) {
  // Notified under the lock: whoever wakes up may destroy the latch at once.
  const std::lock_guard lock(mutex_);
  open_ = true;
  failure_ = std::move(failure);
  opened_.notify_all();
}

std::exception_ptr Latch::opened() const {
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [this] { return open_; });
  return failure_;
}

void QueueEvent::set(std::shared_ptr<Latch> latch) {
  const std::lock_guard lock(mutex_);
  latch_ = std::move(latch);
}

std::shared_ptr<Latch> QueueEvent::latch() const {
  const std::lock_guard lock(mutex_);
  return latch_;
}

WorkQueue::WorkQueue(bool inline_work) : inline_(inline_work) {
  if (!inline_) thread_ = std::thread([this] { serve(); });
}

WorkQueue::~WorkQueue() {
  if (inline_) return;
  push(nullptr);
  thread_.join();
}

void WorkQueue::record(QueueEvent& event) {
  if (inline_ && !failure_) return event.set(nullptr);  // everything before it is done
  record(event, std::make_shared<Latch>());
}

void WorkQueue::record(QueueEvent& event, std::shared_ptr<Latch> latch) {
  event.set(latch);
  if (inline_)
    latch->open(failure_);
  else
    push([this, latch] { latch->open(failure_); });
}

void WorkQueue::wait(const QueueEvent& event) {
  const auto latch = event.latch();
  if (!latch) return;
  enqueue(latch, [](const std::shared_ptr<Latch>& opens) {
    if (const auto failure = opens->done()) std::rethrow_exception(failure);
  });
}

void WorkQueue::synchronize() {
  std::exception_ptr failure;
  if (inline_) {
    failure = failure_;
  } else {
    Latch done;
    push([this, &done] { done.open(failure_); });
    failure = done.opened();
  }
  if (failure) std::rethrow_exception(failure);
}

void WorkQueue::push(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void WorkQueue::serve() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    if (!task) return;
    task();
  }
}

}  // namespace hydrant
