#include "runtime/backends/cpu/host_stream.hpp"

#include "runtime/backends/cpu/stream_copy.hpp"

namespace hydrant::cpu {

void Latch::open(std::exception_ptr failure) {
  // Notified under the lock: whoever wakes up may destroy the latch at once.
  const std::lock_guard lock(mutex_);
  open_ = true;
  failure_ = std::move(failure);
  opened_.notify_all();
}

std::exception_ptr Latch::wait() const {
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [this] { return open_; });
  return failure_;
}

void HostEvent::set(std::shared_ptr<Latch> latch) {
  const std::lock_guard lock(mutex_);
  latch_ = std::move(latch);
}

std::shared_ptr<Latch> HostEvent::latch() const {
  const std::lock_guard lock(mutex_);
  return latch_;
}

HostStream::HostStream(std::string_view lane, bool inline_work)
    : lane_(lane), inline_(inline_work) {
  if (!inline_) thread_ = std::thread([this] { serve(); });
}

HostStream::~HostStream() {
  if (inline_) return;
  push(nullptr);
  thread_.join();
}

void HostStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  enqueue(bytes, [to, from](size_t count) { stream_copy(to, from, count); });
}

void HostStream::fill(void*, size_t, std::function<void()> work) {
  enqueue(work, [](const std::function<void()>& w) { w(); });
}

void HostStream::record(Event& event) {
  auto& host_event = static_cast<HostEvent&>(event);
  if (inline_ && !failure_) return host_event.set(nullptr);  // everything before it is done
  auto latch = std::make_shared<Latch>();
  host_event.set(latch);
  if (inline_)
    latch->open(failure_);
  else
    push([this, latch] { latch->open(failure_); });
}

void HostStream::wait(const Event& event) {
  const auto latch = static_cast<const HostEvent&>(event).latch();
  if (!latch) return;
  enqueue(latch, [](const std::shared_ptr<Latch>& opens) {
    if (const auto failure = opens->wait()) std::rethrow_exception(failure);
  });
}

void HostStream::synchronize() {
  std::exception_ptr failure;
  if (inline_) {
    failure = failure_;
  } else {
    Latch done;
    push([this, &done] { done.open(failure_); });
    failure = done.wait();
  }
  if (failure) std::rethrow_exception(failure);
}

void HostStream::push(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void HostStream::serve() {
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

}  // namespace hydrant::cpu
