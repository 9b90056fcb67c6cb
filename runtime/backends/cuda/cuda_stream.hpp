// Streams of the device. A queue issues to a cudaStream_t: a lane's own thread, or whoever calls.
#pragma once
#include <driver_types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/backends/cuda/kernel_fault.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/buffer.hpp"
#include "runtime/device/work_queue.hpp"

namespace hydrant::cuda {

class Blas;

// CUDA's events, used again and again: each record takes one of its own, so that a wait issued late
// still means the record that was made before it. One is free again when its record has been
// replaced and nobody is to wait for it any more.
class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  explicit EventPool(int device) : device_(device) {}
  ~EventPool();
  // For an event of ours more: as many as its records usually hold at a time, so that none is made
  // while lanes run.
  void grow();
  std::shared_ptr<CUevent_st> take();

 private:
  cudaEvent_t make() const;

  const int device_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

// What a record leaves for streams of any backend: when it is open, the device has been told; when
// the device has come to it, it is done. Whoever waits may be another backend's thread, which has
// chosen no device.
class CudaLatch final : public Latch {
 public:
  CudaLatch(int device, std::shared_ptr<CUevent_st> mark)
      : device_(device), mark_(std::move(mark)) {}
  cudaEvent_t mark() const { return mark_.get(); }
  std::exception_ptr done() const override;

 private:
  const int device_;
  const std::shared_ptr<CUevent_st> mark_;
};

// Work is issued in order: issuing costs the host some microseconds, and the device does it when it
// can. Work of the host's own (fill) waits for the device first, and the device for it. Device work
// that was issued before a failure is not taken back; what it leaves is nobody's result.
class CudaStream final : public Stream {
 public:
  CudaStream(int device, std::shared_ptr<EventPool> events, std::string_view lane,
             bool inline_work);
  ~CudaStream() override;

  // Does work(args, *this), which enqueues on handle().
  template <class Args, class Work>
  void issue(const Args& args, const Work& work) {
    queue_->enqueue(args, [this, work](const Args& a) {
      try {
        select_device();
        work(a, *this);
      } catch (const Error& e) {
        fail_in_part(e);
      }
    });
  }
  std::string_view lane() const override { return lane_; }
  void copy(void* to, const void* from, size_t bytes) override;
  void fill(void* to, size_t bytes, std::function<void()> work) override;
  void enter(const WorkPart& part) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;

  // For work that is being issued.
  cudaStream_t handle() const { return handle_; }
  int device() const { return device_; }
  KernelFault* fault() const { return fault_; }  // kernels and the host reach it
  Blas& blas();
  // Memory that is this work's own until the next work of the stream; grows to the largest request.
  void* scratch(size_t bytes);

 private:
  void select_device() const;
  void drain();
  [[noreturn]] void fail_in_part(const Error& e) const;

  const int device_;
  const std::string lane_;
  const std::shared_ptr<EventPool> events_;
  cudaStream_t handle_ = nullptr;
  Buffer fault_memory_;
  KernelFault* fault_ = nullptr;
  WorkPart part_;  // that is being issued
  Buffer scratch_;
  std::unique_ptr<Blas> blas_;
  std::unique_ptr<WorkQueue> queue_;  // its thread must end before anything else here
};

}  // namespace hydrant::cuda
