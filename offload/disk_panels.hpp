// Panels from the file to the device, on lanes of their own.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "offload/link.hpp"
#include "offload/staging_ring.hpp"
#include "offload/weight_layout.hpp"
#include "offload/weight_offload.hpp"

namespace hydrant {

// Runs of panels are read and packed into a ring of host buffers, each read on the disk lane that
// was given the fewest bytes so far, and copied from there to the slot by the load lane. The reads
// of a step follow each other in a circle, so they go on ahead of what is loaded, into buffers that
// are free: the lanes have work while all slots are held.
class DiskPanels {
 public:
  static constexpr int kBuffersPerLane = 2;

  // What is read arrives in the device's host memory, whose pages are large where they can be: a
  // virtual disk has been seen to fill those two and a half times as fast as small ones.
  struct Memory {
    std::byte* arriving =
        nullptr;  // `turns` of `arriving_bytes` for each lane, on a border of a block
    size_t arriving_bytes = 0;
    int turns = 1;
    std::byte* buffers = nullptr;  // kBuffersPerLane for each, of the layout's largest read
  };
  // The others outlive this. With no lanes the load lane reads as well, when it loads. After
  // `stopping` is set nothing more is read.
  DiskPanels(const Checkpoint& checkpoint, Device& device, const WeightLayout& layout, int lanes,
             const Memory& memory, WeightTraffic& traffic, const std::atomic<bool>& stopping);

  static size_t buffers(int lanes) { return size_t(kBuffersPerLane * std::max(lanes, 1)); }
  // For one read of a lane, whatever it reads, in whole blocks; and how many of these a lane has
  // in turn, of `memory` for all lanes.
  static size_t arriving_bytes(const Checkpoint& checkpoint, const Ops& ops,
                               const WeightLayout& layout);
  static int turns(const WeightLayout& layout, int lanes, size_t arriving_bytes, size_t memory);

  // What the reads move in how many requests, and the memory that the largest of them takes.
  static RowReader::Cost cost(const Checkpoint& checkpoint, const Ops& ops,
                              std::span<const DiskRead> reads);

  uint64_t moved(int stage) const;  // by loading it, from the file
  // Enqueues what stage `stage` of the layout has in the file. Another than the next one in the
  // circle drops what was read ahead.
  void load(int stage, std::byte* slot, Stream& load_lane, Link& link);
  // Enqueues reads as far as there are buffers; nothing without lanes.
  void read_ahead();

  // Between steps: waits for the reads that are under way, of which ahead() is what the file gives.
  void settle();
  uint64_t ahead() const;

 private:
  struct Read {
    const DiskRead* what;
    std::string label;
    uint64_t moved;  // by it, from the file
  };
  struct Lane {
    PanelReader reader;
    std::vector<PanelLoad> loads{};
    std::byte* arriving = nullptr;  // of its turns
    int turn = 0;
    uint64_t given = 0;              // bytes of the file
    std::unique_ptr<Stream> stream;  // null: the load lane. Last: its work ends before the reader
  };
  const Read& read_of(int64_t use) const {
    return circle_[(at_ + size_t(use - copied_)) % circle_.size()];
  }
  void read_next(Stream* load_lane);  // null: lanes have streams
  void go_to(size_t read, Stream& load_lane);

  std::vector<Read> circle_;
  std::vector<size_t> begin_;  // [stage]: its first in the circle
  WeightTraffic& traffic_;
  const std::atomic<bool>& stopping_;
  const Memory memory_;
  StagingRing buffers_;
  // Uses of the buffers: those before copied_ are copied, or dropped, those before read_ are read.
  // at_: what use copied_ reads.
  int64_t copied_ = 0, read_ = 0;
  size_t at_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace hydrant
