#include "test/cuda/emu/fake_streams.hpp"

#include <algorithm>
#include <cstring>

#include "test/cuda/emu/block.hpp"
#include "test/cuda/emu/fake_runtime.hpp"
#include "test/cuda/emu/sanitizers.hpp"
#include "test/cuda/emu/settings.hpp"

namespace emu {
namespace {

thread_local bool inside_operation = false;

void acquire(void* tag) {
  if (__tsan_acquire) __tsan_acquire(tag);
}
void release(void* tag) {
  if (__tsan_release) __tsan_release(tag);
}

}  // namespace

FakeRuntime::FakeRuntime() : random_(settings().seed) {}

FakeRuntime& FakeRuntime::get() {
  static auto* const runtime = new FakeRuntime;  // lives as long as buffers that are freed at exit
  return *runtime;
}

void FakeRuntime::check(cudaStream_t stream) {
  if (inside_operation) die("a CUDA call from inside an operation of a stream");
  if (!stream) die("the default stream is used: pass an explicit one");
  const std::lock_guard lock(mutex);
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end())
    die("an unknown or destroyed stream, %p", static_cast<void*>(stream));
}

bool FakeRuntime::can_start(const CUstream_st& stream) const {
  if (stream.operations.empty()) return false;
  const auto& wait = stream.operations.front().wait;
  return !wait || wait->done;
}

void FakeRuntime::execute(CUstream_st& stream, Operation& operation) {
  acquire(operation.tag.get());
  if (operation.wait) acquire(&operation.wait->tag);
  inside_operation = true;
  if (operation.work) operation.work();
  inside_operation = false;
  if (operation.record) release(&operation.record->tag);
  release(&stream.done_tag);
}

void FakeRuntime::serve(CUstream_st& stream) {
  std::mt19937 random(stream.priority);
  for (;;) {
    Operation operation;
    {
      const Hidden hidden;
      std::unique_lock lock(mutex);
      changed_.wait(
          lock, [&] { return can_start(stream) || (stream.ends && stream.operations.empty()); });
      if (stream.operations.empty()) return;
      operation = std::move(stream.operations.front());
      stream.operations.pop_front();
      stream.busy = true;
    }
    if (settings().jitter > 0)
      std::this_thread::sleep_for(
          std::chrono::microseconds(random() % uint32_t(settings().jitter)));
    execute(stream, operation);
    const Hidden hidden;
    const std::lock_guard lock(mutex);
    if (operation.record) operation.record->done = true;
    stream.busy = false;
    operation = {};
    changed_.notify_all();
  }
}

// With the lock; memory is open.
bool FakeRuntime::step() {
  std::vector<CUstream_st*> able;
  for (CUstream_st* s : streams_)
    if (can_start(*s)) able.push_back(s);
  if (able.empty()) return false;
  if (random_() % 16 == 0)  // not at every step: streams must also overtake others by far
    for (CUstream_st* s : streams_) s->priority = uint32_t(random_());
  CUstream_st& stream = **std::max_element(
      able.begin(), able.end(), [](auto* a, auto* b) { return a->priority < b->priority; });
  Operation operation = std::move(stream.operations.front());
  stream.operations.pop_front();
  execute(stream, operation);
  if (operation.record) operation.record->done = true;
  return true;
}

// With the lock.
void FakeRuntime::steps_while(const std::function<bool()>& wanted) {
  memory.open();
  while (wanted() && step()) {
  }
  memory.close();
  changed_.notify_all();
}

void FakeRuntime::wait_until(const std::function<bool()>& holds) {
  const Hidden hidden;
  std::unique_lock lock(mutex);
  if (!settings().deterministic) return changed_.wait(lock, holds);
  // Another thread of the host may yet enqueue what is missing. Not one long wait: the whole
  // process may be made to stand still.
  constexpr int kMost = 60;
  for (int seconds = 0; seconds <= kMost; seconds++) {
    steps_while([&] { return !holds(); });
    if (holds()) return;
    if (changed_.wait_for(lock, std::chrono::seconds(1)) == std::cv_status::no_timeout) seconds = 0;
  }
  die("deadlock: the host waits for what nothing will complete");
}

// What is told to ThreadSanitizer must not be told while it is asked to ignore it.
void FakeRuntime::push(cudaStream_t stream, Operation operation) {
  {
    const Hidden hidden;
    check(stream);
    operation.tag = std::make_shared<char>();
  }
  release(operation.tag.get());
  {
    const Hidden hidden;
    const std::lock_guard lock(mutex);
    stream->operations.push_back(std::move(operation));
    changed_.notify_all();
    // Sometimes streams run ahead; mostly they lag behind the host.
    if (settings().deterministic && random_() % 4 == 0)
      steps_while([steps = random_() % 8]() mutable { return steps-- > 0; });
  }
}

cudaStream_t FakeRuntime::make_stream() {
  const Hidden hidden;
  auto* const stream = new CUstream_st;
  {
    const std::lock_guard lock(mutex);
    stream->priority = uint32_t(random_());
    streams_.push_back(stream);
  }
  if (!settings().deterministic) stream->thread = std::thread([this, stream] { serve(*stream); });
  return stream;
}

void FakeRuntime::destroy(cudaStream_t stream) {
  synchronize(stream);
  const Hidden hidden;
  {
    const std::lock_guard lock(mutex);
    stream->ends = true;
    streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
    changed_.notify_all();
  }
  if (stream->thread.joinable()) stream->thread.join();
  delete stream;
}

void FakeRuntime::synchronize(cudaStream_t stream) {
  {
    const Hidden hidden;
    check(stream);
  }
  wait_until([stream] { return stream->operations.empty() && !stream->busy; });
  acquire(&stream->done_tag);
}

void FakeRuntime::synchronize_all() {
  std::vector<CUstream_st*> all;
  {
    const Hidden hidden;
    const std::lock_guard lock(mutex);
    all = streams_;
  }
  for (CUstream_st* stream : all) synchronize(stream);
}

void FakeRuntime::record(cudaEvent_t event, cudaStream_t stream) {
  Operation operation;
  {
    const Hidden hidden;
    event->record = operation.record = std::make_shared<Record>();
  }
  push(stream, std::move(operation));
}

void FakeRuntime::wait(cudaStream_t stream, cudaEvent_t event) {
  Operation operation;
  {
    const Hidden hidden;
    operation.wait = event->record;
  }
  if (operation.wait) push(stream, std::move(operation));  // else never recorded: nothing
}

void FakeRuntime::synchronize(cudaEvent_t event) {
  std::shared_ptr<Record> record;
  {
    const Hidden hidden;
    record = event->record;
  }
  if (!record) return;
  wait_until([&] { return record->done; });
  acquire(&record->tag);
}

cudaError_t FakeRuntime::copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  bool to_device, from_device, to_pinned, from_pinned;
  {
    const Hidden hidden;
    const std::lock_guard lock(mutex);
    to_device = memory.on_device(to, bytes), from_device = memory.on_device(from, bytes);
    to_pinned = memory.pinned(to, bytes), from_pinned = memory.pinned(from, bytes);
    // A range that begins in a block must end in it.
    if ((!to_device && memory.on_device(to, 1)) || (!from_device && memory.on_device(from, 1)) ||
        (!to_pinned && memory.pinned(to, 1)) || (!from_pinned && memory.pinned(from, 1)))
      die("a copy of %zu bytes, %p to %p, leaves its block", bytes, from, to);
  }
  if (kind != cudaMemcpyDefault) die("copies name no direction here: cudaMemcpyDefault");
  if (!from_device && !from_pinned) {  // pageable: staged by the call
    const auto* begin = static_cast<const char*>(from);
    // Whoever lets go of it last frees it, which is nobody's business but the fake's.
    const std::shared_ptr<std::vector<char>> staged(new std::vector<char>(begin, begin + bytes),
                                                    [](std::vector<char>* unused) {
                                                      const Hidden hidden;
                                                      delete unused;
                                                    });
    push(stream, {[=] { std::memcpy(to, staged->data(), bytes); }, nullptr, nullptr, nullptr});
  } else {
    push(stream, {[=] { std::memcpy(to, from, bytes); }, nullptr, nullptr, nullptr});
  }
  if (!to_device && !to_pinned) synchronize(stream);  // pageable: the call waits
  return cudaSuccess;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  FakeRuntime::get().push(stream, {std::move(work), nullptr, nullptr, nullptr});
}

}  // namespace emu
