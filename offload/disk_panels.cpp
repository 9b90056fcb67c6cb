#include "offload/disk_panels.hpp"

#include <utility>

#include "runtime/device/traced.hpp"

namespace hydrant {

DiskPanels::DiskPanels(const Checkpoint& checkpoint, Device& device, const WeightLayout& layout,
                       int lanes, std::byte* memory, WeightTraffic& traffic,
                       const std::atomic<bool>& stopping)
    : traffic_(traffic),
      stopping_(stopping),
      buffers_(device, memory, int(buffers(lanes)), layout.largest_run) {
  size_t most = 0;
  for (const StageLayout& stage : layout.stages)
    most = std::max(most, cost(checkpoint, device.ops(), stage.disk).memory);
  if (most == 0) return;
  for (int i = 0; i < std::max(lanes, 1); i++) {
    auto stream = lanes > 0
                      ? device.make_stream(fmt::format("disk {}", i + 1), /*inline_work=*/false)
                      : nullptr;
    lanes_.push_back(
        std::make_unique<Lane>(Lane{PanelReader(checkpoint, device.ops()), std::move(stream)}));
    lanes_.back()->reader.reserve(most);
  }
}

RowReader::Cost DiskPanels::cost(const Checkpoint& checkpoint, const Ops& ops,
                                 std::span<const DiskRun> runs) {
  PanelReader reader(checkpoint, ops);
  RowReader::Cost sum;
  for (const DiskRun& d : runs) {
    const RowReader::Cost one = reader.cost(d.run);
    sum.moved += one.moved;
    sum.memory = std::max(sum.memory, one.memory);
  }
  return sum;
}

void DiskPanels::load(std::span<const DiskRun> runs, std::byte* slot, Stream& load_lane,
                      Link& link) {
  for (const DiskRun& d : runs) {
    const int64_t use = use_++;
    Lane& lane = *lanes_[size_t(use) % lanes_.size()];
    Stream& disk = lane.stream ? *lane.stream : load_lane;
    std::byte* const buffer = buffers_.data(use);
    buffers_.begin_fill(use, disk);
    {
      const Traced traced(disk, d.run.bytes(), "read {}", name(d.run.matrix->source.role));
      disk.fill(buffer, d.run.bytes(), [this, &lane, run = d.run, buffer] {
        if (!stopping_) traffic_.file += lane.reader.read(run, buffer);
      });
    }
    buffers_.end_fill(use, disk);
    buffers_.begin_read(use, load_lane);
    {
      const Traced traced(load_lane, d.run.bytes(), "{} from disk",
                          name(d.run.matrix->source.role));
      link.copy(load_lane, slot + d.slot_at, buffer, d.run.bytes());
    }
    buffers_.end_read(use, load_lane);
    traffic_.from_disk += d.run.bytes();
  }
}

}  // namespace hydrant
