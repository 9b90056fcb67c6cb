// Streams and events of the fake runtime.
#pragma once
#include <cuda_runtime_api.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "test/cuda/emu/fake_memory.hpp"

namespace emu {

// One cudaEventRecord.
struct Record {
  bool done = false;
  char tag = 0;
};
struct Operation {
  std::function<void()> work;
  std::shared_ptr<Record> wait, record;
  std::shared_ptr<char> tag;  // orders it behind the host that enqueued it
};

}  // namespace emu

struct CUevent_st {
  std::shared_ptr<emu::Record> record;
};
struct CUstream_st {
  std::thread thread;
  std::deque<emu::Operation> operations;
  bool busy = false, ends = false;
  char done_tag = 0;
  uint32_t priority = 0;
};

namespace emu {

class FakeRuntime {
 public:
  static FakeRuntime& get();

  cudaStream_t make_stream();
  void destroy(cudaStream_t stream);
  void synchronize(cudaStream_t stream);
  void synchronize_all();
  void push(cudaStream_t stream, Operation operation);
  void record(cudaEvent_t event, cudaStream_t stream);
  void wait(cudaStream_t stream, cudaEvent_t event);
  void synchronize(cudaEvent_t event);
  cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream);

  std::mutex mutex;  // of everything; hidden from ThreadSanitizer
  FakeMemory memory;

 private:
  void check(cudaStream_t stream);
  bool can_start(const CUstream_st& stream) const;
  void execute(CUstream_st& stream, Operation& operation);
  void serve(CUstream_st& stream);
  // Deterministic runs: one operation of some stream; false: none can start.
  bool step();
  void steps_while(const std::function<bool()>& wanted);
  void wait_until(const std::function<bool()>& holds);

  std::condition_variable changed_;
  std::vector<CUstream_st*> streams_;
  std::mt19937 random_;
  FakeRuntime();
};

}  // namespace emu
