#include "offload/disk_panels.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/aligned.hpp"
#include "runtime/device/traced.hpp"

namespace hydrant {
namespace {

// One behind another from `to` on.
void list(const DiskRead& read, std::byte* to, std::vector<PanelLoad>& loads) {
  loads.clear();
  size_t at = 0;
  for (const DiskRun& d : read.runs) {
    loads.push_back({d.run, to ? to + at : nullptr});
    at += d.run.bytes();
  }
}

// "gate, ..."
std::string label(const DiskRead& read) {
  return fmt::format("{}{}", name(read.runs.front().run.matrix->source.role),
                     read.runs.size() > 1 ? ", ..." : "");
}

}  // namespace

DiskPanels::DiskPanels(const Checkpoint& checkpoint, Device& device, const WeightLayout& layout,
                       int lanes, const Memory& memory, WeightTraffic& traffic,
                       const std::atomic<bool>& stopping)
    : traffic_(traffic),
      stopping_(stopping),
      memory_(memory),
      buffers_(device, memory.buffers, int(buffers(lanes)), layout.largest_read) {
  for (const StageLayout& stage : layout.stages) {
    begin_.push_back(circle_.size());
    for (const DiskRead& read : stage.disk)
      circle_.push_back({&read, label(read), cost(checkpoint, device.ops(), {&read, 1}).moved});
  }
  begin_.push_back(circle_.size());
  if (memory.arriving_bytes == 0) return;
  for (int i = 0; i < std::max(lanes, 1); i++) {
    auto stream = lanes > 0
                      ? device.make_stream(fmt::format("disk {}", i + 1), /*inline_work=*/false)
                      : nullptr;
    lanes_.push_back(std::make_unique<Lane>(
        Lane{.reader = PanelReader(checkpoint, device.ops()),
             .arriving = memory.arriving + size_t(i * memory.turns) * memory.arriving_bytes,
             .stream = std::move(stream)}));
  }
}

size_t DiskPanels::arriving_bytes(const Checkpoint& checkpoint, const Ops& ops,
                                  const WeightLayout& layout) {
  size_t most = 0;
  if (!checkpoint.is_readable()) return most;  // a shape alone has nothing that could be read
  for (const StageLayout& stage : layout.stages)
    most = std::max(most, cost(checkpoint, ops, stage.disk).memory);
  return align_up(most, File::kBlock);
}

int DiskPanels::turns(const WeightLayout& layout, int lanes, size_t arriving_bytes, size_t memory) {
  size_t reads = 0;
  for (const StageLayout& stage : layout.stages) reads += stage.disk.size();
  if (reads == 0 || arriving_bytes == 0) return 1;
  const auto of = size_t(std::max(lanes, 1));
  return int(std::clamp(memory / (of * arriving_bytes), size_t{1}, (reads + of - 1) / of));
}

RowReader::Cost DiskPanels::cost(const Checkpoint& checkpoint, const Ops& ops,
                                 std::span<const DiskRead> reads) {
  PanelReader reader(checkpoint, ops);
  std::vector<PanelLoad> loads;
  RowReader::Cost sum;
  for (const DiskRead& read : reads) {
    list(read, nullptr, loads);
    const RowReader::Cost one = reader.cost(loads);
    sum.moved += one.moved;
    sum.requests += one.requests;
    sum.memory = std::max(sum.memory, one.memory);
  }
  return sum;
}

uint64_t DiskPanels::moved(int stage) const {
  uint64_t sum = 0;
  for (size_t i = begin_[size_t(stage)]; i < begin_[size_t(stage) + 1]; i++)
    sum += circle_[i].moved;
  return sum;
}

void DiskPanels::read_next(Stream* load_lane) {
  const int64_t use = read_++;
  const Read& next = read_of(use);
  const DiskRead& read = *next.what;
  Lane& lane = **std::min_element(lanes_.begin(), lanes_.end(),
                                  [](const auto& a, const auto& b) { return a->given < b->given; });
  lane.given += uint64_t(read.file_bytes);
  Stream& disk = lane.stream ? *lane.stream : *load_lane;
  std::byte* const buffer = buffers_.data(use);
  buffers_.begin_fill(use, disk);
  {
    const Traced traced(disk, read.bytes, "read {}", next.label);
    disk.fill(buffer, read.bytes, [this, &lane, &read, buffer] {
      if (stopping_) return;
      list(read, buffer, lane.loads);
      lane.reader.use(lane.arriving + size_t(lane.turn) * memory_.arriving_bytes,
                      memory_.arriving_bytes);
      lane.turn = (lane.turn + 1) % memory_.turns;
      traffic_.file += lane.reader.read(lane.loads);
    });
  }
  buffers_.end_fill(use, disk);
}

void DiskPanels::read_ahead() {
  if (circle_.empty() || lanes_.empty() || !lanes_.front()->stream) return;
  while (read_ - copied_ < buffers_.slots()) read_next(nullptr);
}

// Goes on from another read: a run may have ended in the middle of a step.
void DiskPanels::go_to(size_t read, Stream& load_lane) {
  if (at_ == read) return;
  for (; copied_ < read_; copied_++) {
    buffers_.begin_read(copied_, load_lane);
    buffers_.end_read(copied_, load_lane);
  }
  at_ = read;
}

void DiskPanels::load(int stage, std::byte* slot, Stream& load_lane, Link& link) {
  const size_t end = begin_[size_t(stage) + 1];
  if (begin_[size_t(stage)] == end) return;
  go_to(begin_[size_t(stage)], load_lane);
  for (size_t i = begin_[size_t(stage)]; i < end; i++) {
    if (read_ == copied_) read_next(&load_lane);
    const DiskRead& read = *circle_[i].what;
    buffers_.begin_read(copied_, load_lane);
    {
      const Traced traced(load_lane, read.bytes, "{} from disk", circle_[i].label);
      size_t at = 0;
      for (const DiskRun& d : read.runs) {
        link.copy(load_lane, slot + d.slot_at, buffers_.data(copied_) + at, d.run.bytes());
        at += d.run.bytes();
      }
    }
    buffers_.end_read(copied_, load_lane);
    traffic_.from_disk += read.bytes;
    copied_++;
    at_ = (i + 1) % circle_.size();
  }
}

void DiskPanels::settle() {
  for (const auto& lane : lanes_)
    if (lane->stream) lane->stream->synchronize();
}

uint64_t DiskPanels::ahead() const {
  uint64_t sum = 0;
  for (int64_t use = copied_; use < read_; use++) sum += read_of(use).moved;
  return sum;
}

}  // namespace hydrant
