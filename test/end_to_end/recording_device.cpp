#include "test/end_to_end/recording_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/base/error.hpp"

namespace hydrant::test {
namespace {

void join(Clock& into, const Clock& other) {
  into.resize(std::max(into.size(), other.size()));
  for (size_t i = 0; i < other.size(); i++) into[i] = std::max(into[i], other[i]);
}

int64_t at(const Clock& clock, int lane) {
  return size_t(lane) < clock.size() ? clock[size_t(lane)] : 0;
}

}  // namespace

void RecordingStream::begin(std::string_view operation) {
  operation_ = operation;
  join(clock_, device_.host_);  // what the host has waited for comes before what it enqueues
  clock_.resize(std::max(clock_.size(), size_t(id_) + 1));
  clock_[size_t(id_)]++;
}

void RecordingStream::reads(const void* at, size_t bytes) const {
  device_.touch(const_cast<RecordingStream&>(*this), at, bytes, false);
}
void RecordingStream::writes(const void* at, size_t bytes) const {
  device_.touch(const_cast<RecordingStream&>(*this), at, bytes, true);
}

void RecordingStream::copy(void* to, const void* from, size_t bytes) {
  begin("copy");
  reads(from, bytes);
  writes(to, bytes);
  if (bytes > 0) std::memmove(to, from, bytes);  // nothing may be at no place
}

void RecordingStream::fill(void* to, size_t bytes, std::function<void()> work) {
  begin("fill");
  writes(to, bytes);
  work();
}

void RecordingStream::record(Event& event) {
  begin("record");
  static_cast<RecordingEvent&>(event).clock = clock_;
}

void RecordingStream::wait(const Event& event) {
  const auto& recorded = static_cast<const RecordingEvent&>(event);
  const RecordingDevice::Edge edge{lane_, recorded.id};
  begin("wait");
  if (recorded.clock.empty()) return;
  device_.edges_.insert(edge);
  if (edge != device_.ignored_) join(clock_, recorded.clock);
}

void RecordingStream::synchronize() { join(device_.host_, clock_); }

namespace {

class RecordingHost final : public Device {
 public:
  explicit RecordingHost(RecordingDevice& device)
      : device_(device), ops_(recording_ops(device, nullptr, /*run_scale=*/2)) {}
  std::string_view name() const override { return "recording host"; }
  std::string describe() const override { return "recording host"; }
  std::string_view isa() const override { return "none"; }
  int threads() const override { return 1; }
  Buffer allocate(Memory memory, size_t bytes, std::string_view what) override {
    return device_.allocate(memory, bytes, what);
  }
  size_t available(Memory memory) const override { return device_.available(memory); }
  bool is_host() const override { return true; }
  std::unique_ptr<Stream> make_stream(std::string_view lane, bool inline_work) override {
    return device_.make_stream(lane, inline_work);
  }
  std::unique_ptr<Event> make_event() override { return device_.make_event(); }
  Ops& ops() override { return *ops_; }

 private:
  RecordingDevice& device_;
  std::unique_ptr<Ops> ops_;
};

}  // namespace

RecordingDevice::RecordingDevice()
    : ops_(recording_ops(*this)), host_device_(std::make_unique<RecordingHost>(*this)) {}
RecordingDevice::~RecordingDevice() = default;

Buffer RecordingDevice::allocate(Memory memory, size_t bytes, std::string_view) {
  allocated_ += bytes;
  void* const data = std::aligned_alloc(64, (bytes / 64 + 1) * 64);
  std::memset(data, 0, bytes);
  return {data, bytes, memory, [](void* p, size_t) { std::free(p); }};
}

std::unique_ptr<Stream> RecordingDevice::make_stream(std::string_view lane, bool) {
  lanes_.emplace_back(lane);
  return std::make_unique<RecordingStream>(*this, lane, int(lanes_.size()) - 1);
}

std::unique_ptr<Event> RecordingDevice::make_event() {
  return std::make_unique<RecordingEvent>(events_++);
}

void RecordingDevice::split_at(uintptr_t address) {
  const auto after = memory_.upper_bound(address);
  if (after == memory_.begin()) {
    memory_[address];
    return;
  }
  const auto before = std::prev(after);
  if (before->first != address) memory_.emplace_hint(after, address, before->second);
}

void RecordingDevice::touch(RecordingStream& stream, const void* memory, size_t bytes, bool write) {
  if (!memory || bytes == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory), end = begin + bytes;
  split_at(begin);
  split_at(end);
  const Access now{stream.id_, at(stream.clock_, stream.id_), write, stream.operation_};
  for (auto piece = memory_.find(begin); piece->first != end; ++piece) {
    std::vector<Access>& accesses = piece->second;
    for (const Access& a : accesses)
      if ((a.write || write) && a.lane != now.lane && a.time > at(stream.clock_, a.lane))
        races_.push_back(fmt::format("{} on {} and {} on {}", a.operation, lanes_[size_t(a.lane)],
                                     now.operation, lanes_[size_t(now.lane)]));
    // An earlier access of the same lane and kind is implied by this one.
    std::erase_if(accesses,
                  [&](const Access& a) { return a.lane == now.lane && a.write == now.write; });
    accesses.push_back(now);
  }
}

}  // namespace hydrant::test
