#include "runtime/backends/cuda/cuda_stream.hpp"

#include <cuda_runtime_api.h>

#include "runtime/backends/cuda/blas.hpp"
#include "runtime/backends/cuda/cuda_errors.hpp"
#include "runtime/backends/cuda/cuda_memory.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cuda {

EventPool::~EventPool() {
  for (cudaEvent_t event : free_) cudaEventDestroy(event);
}

cudaEvent_t EventPool::make() const {
  check(cudaSetDevice(device_), "the chosen device");
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "a new event");
  return event;
}

void EventPool::grow() {
  constexpr size_t kRecords = 4;  // the latest, and those that lanes behind have yet to come to
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kRecords; i++) free_.push_back(make());
}

std::shared_ptr<CUevent_st> EventPool::take() {
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) event = free_.back(), free_.pop_back();
  }
  if (!event) event = make();
  return {event, [pool = shared_from_this()](cudaEvent_t back) {
            const std::lock_guard lock(pool->mutex_);
            pool->free_.push_back(back);
          }};
}

std::exception_ptr CudaLatch::done() const {
  if (const auto failure = opened()) return failure;
  try {
    check(cudaSetDevice(device_), "the chosen device");
    check(cudaEventSynchronize(mark()), "waiting for an event");
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

CudaStream::CudaStream(int device, std::shared_ptr<EventPool> events, std::string_view lane,
                       bool inline_work)
    : device_(device), lane_(lane), events_(std::move(events)) {
  select_device();
  check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "a new stream");
  fault_memory_ = allocate_pinned(sizeof(KernelFault), "a new stream");
  fault_ = new (fault_memory_.data()) KernelFault;
  queue_ = std::make_unique<WorkQueue>(inline_work);
}

CudaStream::~CudaStream() {
  queue_.reset();
  cudaSetDevice(device_);
  cudaStreamSynchronize(handle_);
  blas_.reset();
  cudaStreamDestroy(handle_);
}

void CudaStream::select_device() const { check(cudaSetDevice(device_), "the chosen device"); }

void CudaStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  issue(bytes, [to, from](size_t count, CudaStream& s) {
    const cudaError_t error = cudaMemcpyAsync(to, from, count, cudaMemcpyDefault, s.handle());
    if (error != cudaSuccess) check(error, fmt::format("a copy on lane {}", s.lane()));
  });
}

void CudaStream::fill(void*, size_t, std::function<void()> work) {
  issue(work, [](const std::function<void()>& w, CudaStream& s) {
    s.drain();
    w();
  });
}

void CudaStream::enter(const WorkPart& part) {
  queue_->enqueue(part, [this](const WorkPart& p) { part_ = p; });
}

// What the device says comes late: the part is the one whose work was refused, not always the one
// that is to blame.
void CudaStream::fail_in_part(const Error& e) const {
  if (part_.step == 0) throw e;
  const std::string number = part_.number < 0 ? "" : fmt::format(" {}", part_.number);
  throw Error(e.fault(),
              fmt::format("step {}, {}{}: {}", part_.step, part_.name, number, e.what()));
}

void CudaStream::record(Event& event) {
  const auto latch = std::make_shared<CudaLatch>(device_, events_->take());
  issue(latch, [](const std::shared_ptr<CudaLatch>& l, CudaStream& s) {
    check(cudaEventRecord(l->mark(), s.handle()), "the record of an event");
  });
  queue_->record(static_cast<QueueEvent&>(event), latch);
}

// The device waits for the device's own marks; what else there is to wait for is done when its
// latch opens, and until then nothing more is issued.
void CudaStream::wait(const Event& event) {
  const auto latch = static_cast<const QueueEvent&>(event).latch();
  if (!latch) return;
  // What another lane failed of is told with the part that waits for it.
  queue_->enqueue(latch, [this](const std::shared_ptr<Latch>& l) {
    const auto failure = l->opened();
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const Error& e) {
      if (e.fault() != Fault::io) throw;
      fail_in_part(e);
    }
  });
  issue(latch, [](const std::shared_ptr<Latch>& l, CudaStream& s) {
    if (const auto* const own = dynamic_cast<const CudaLatch*>(l.get()))
      check(cudaStreamWaitEvent(s.handle(), own->mark(), 0), "a wait for an event");
  });
}

void CudaStream::drain() {
  check(cudaStreamSynchronize(handle_), fmt::format("lane {}", lane_));
  check(*fault_);
}

void CudaStream::synchronize() {
  issue(0, [](int, CudaStream& s) { s.drain(); });
  try {
    queue_->synchronize();
  } catch (...) {
    // What was issued before the failure still runs, on memory that the caller may now give back.
    cudaSetDevice(device_);
    cudaStreamSynchronize(handle_);
    throw;
  }
}

Blas& CudaStream::blas() {
  if (!blas_) blas_ = std::make_unique<Blas>(handle_);
  return *blas_;
}

void* CudaStream::scratch(size_t bytes) {
  if (bytes > scratch_.bytes()) {
    check(cudaStreamSynchronize(handle_), "lane " + lane_);
    scratch_ = {};
    scratch_ = allocate_device(bytes, "scratch of operations");
  }
  return scratch_.data();
}

}  // namespace hydrant::cuda
