// A device that computes nothing and remembers everything: which memory each operation reads and
// writes, and which waits order them. Two accesses of different lanes to the same memory, one of
// them a write, that no chain of records, waits and synchronizations puts in order are a race,
// whatever the timing. (ThreadSanitizer is the second opinion: it sees only what happens to run.)
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.hpp"
#include "test/end_to_end/recording_ops.hpp"

namespace hydrant::test {

class RecordingDevice;

// Of each lane, how much of its work comes before.
using Clock = std::vector<int64_t>;

class RecordingEvent final : public Event {
 public:
  explicit RecordingEvent(int event_id) : id(event_id) {}
  Clock clock;  // of the latest record
  const int id;
};

class RecordingStream final : public Stream {
 public:
  RecordingStream(RecordingDevice& device, std::string_view lane, int id)
      : device_(device), lane_(lane), id_(id) {}
  std::string_view lane() const override { return lane_; }
  void copy(void* to, const void* from, size_t bytes) override;
  void fill(void* to, size_t bytes, std::function<void()> work) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;

  // The next operation on this lane touches this memory.
  void begin(std::string_view operation);
  void reads(const void* at, size_t bytes) const;
  void writes(const void* at, size_t bytes) const;

 private:
  RecordingDevice& device_;
  const std::string lane_;
  const int id_;
  Clock clock_;
  std::string operation_;
  friend class RecordingDevice;
};

class RecordingDevice final : public Device, public Watch {
 public:
  RecordingDevice();
  ~RecordingDevice() override;
  std::string_view name() const override { return "recording"; }
  std::string describe() const override { return "recording"; }
  std::string_view isa() const override { return "none"; }
  int threads() const override { return 1; }
  Buffer allocate(Memory memory, size_t bytes, std::string_view what) override;
  size_t available(Memory) const override { return size_t{1} << 40; }
  bool is_host() const override { return computes_in_host_memory; }
  std::unique_ptr<Stream> make_stream(std::string_view lane, bool inline_work) override;
  std::unique_ptr<Event> make_event() override;
  Ops& ops() override { return *ops_; }

  bool computes_in_host_memory = true;
  // A second device that computes in host memory, and keeps runs of another size. Its streams, too,
  // are remembered here.
  Device& host() { return *host_device_; }

  using Edge = std::pair<std::string, int>;  // the waiting lane, and the event's number
  const std::set<Edge>& edges() const { return edges_; }
  void ignore(const Edge& edge) { ignored_ = edge; }  // its waits order nothing

  const std::vector<std::string>& races() const { return races_; }
  size_t allocated() const { return allocated_; }  // ever

 private:
  struct Access {
    int lane;
    int64_t time;
    bool write;
    std::string operation;
  };
  void begins(Stream& stream, std::string_view operation) override {
    static_cast<RecordingStream&>(stream).begin(operation);
  }
  void touches(Stream& stream, const void* at, size_t bytes, bool write) override {
    touch(static_cast<RecordingStream&>(stream), at, bytes, write);
  }
  void touch(RecordingStream& stream, const void* at, size_t bytes, bool write);
  void split_at(uintptr_t address);
  friend class RecordingStream;

  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Device> host_device_;
  std::vector<std::string> lanes_;
  Clock host_;
  int events_ = 0;
  size_t allocated_ = 0;
  std::set<Edge> edges_;
  Edge ignored_{"", -1};
  // Latest accesses of each piece of memory: address -> of the bytes up to the next address.
  std::map<uintptr_t, std::vector<Access>> memory_;
  std::vector<std::string> races_;
};

}  // namespace hydrant::test
