// Queues of work and the events that order them; they mean the same on every backend.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace hydrant {

// A point in a stream's work. Recording again moves it; waiting on one never recorded returns at
// once.
class Event {
 public:
  virtual ~Event() = default;
};

// Which part of a run work belongs to.
struct WorkPart {
  int64_t step = 0;       // from 1 on; 0: of no step
  const char* name = "";  // "layer"
  int32_t number = 0;     // from 0 on; -1: there is only one of this name
};

// A queue of work that runs in order, beside other streams. A wait names the record made before it
// was enqueued, so the enqueue order is a topological order and streams cannot deadlock. A failure
// is sticky: later work is skipped, later records still fire but make the streams that wait for
// them fail as well, and synchronize() throws the first failure.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual std::string_view lane() const = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // Work of the host's own that writes host memory [to, to + bytes), and no other that a stream
  // touches. What it throws is the stream's failure. It must not wait for this stream's later work.
  virtual void fill(void* to, size_t bytes, std::function<void()> work) = 0;
  // What is enqueued from now on belongs to this part: a device's failures say so.
  virtual void enter(const WorkPart&) {}
  virtual void record(Event& event) = 0;
  virtual void wait(const Event& event) = 0;
  virtual void
  synchronize() = 0;  // blocks the caller until all work is done; throws its first failure
};

}  // namespace hydrant
