// Streams of the CPU: a thread with a queue, or the caller itself.
#pragma once
#include <string>

#include "runtime/device/work_queue.hpp"

namespace hydrant::cpu {

using HostEvent = QueueEvent;

class HostStream final : public Stream {
 public:
  HostStream(std::string_view lane, bool inline_work) : lane_(lane), queue_(inline_work) {}

  // Does work(args); a thread does it with its own copy of both.
  template <class Args, class Work>
  void enqueue(const Args& args, const Work& work) {
    queue_.enqueue(args, work);
  }
  std::string_view lane() const override { return lane_; }
  void copy(void* to, const void* from, size_t bytes) override;
  void fill(void* to, size_t bytes, std::function<void()> work) override;
  void record(Event& event) override { queue_.record(static_cast<HostEvent&>(event)); }
  void wait(const Event& event) override { queue_.wait(static_cast<const HostEvent&>(event)); }
  void synchronize() override { queue_.synchronize(); }

 private:
  const std::string lane_;
  WorkQueue queue_;
};

}  // namespace hydrant::cpu
