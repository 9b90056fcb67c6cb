// Panels from the file to the device, on lanes of their own.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "offload/link.hpp"
#include "offload/staging_ring.hpp"
#include "offload/weight_layout.hpp"
#include "offload/weight_offload.hpp"

namespace hydrant {

// Runs of panels are read and packed into a ring of host buffers, each read on the disk lane that
// was given the fewest bytes so far, and copied from there to the slot by the load lane. They are
// read ahead of the slot's `free`: they need only a buffer.
class DiskPanels {
 public:
  static constexpr int kBuffersPerLane = 2;

  // What is read arrives in the device's host memory, whose pages are large where they can be: a
  // virtual disk has been seen to fill those two and a half times as fast as small ones.
  struct Memory {
    std::byte* arriving = nullptr;  // of `arriving_bytes` for each lane, on a border of a block
    size_t arriving_bytes = 0;
    std::byte* buffers = nullptr;  // kBuffersPerLane for each, of the layout's largest read
  };
  // The others outlive this. With no lanes the load lane reads as well. After `stopping` is set
  // nothing more is read.
  DiskPanels(const Checkpoint& checkpoint, Device& device, const WeightLayout& layout, int lanes,
             const Memory& memory, WeightTraffic& traffic, const std::atomic<bool>& stopping);

  static size_t buffers(int lanes) { return size_t(kBuffersPerLane * std::max(lanes, 1)); }
  // For a lane, whatever it reads, in whole blocks.
  static size_t arriving_bytes(const Checkpoint& checkpoint, const Ops& ops,
                               const WeightLayout& layout);

  // What the reads move in how many requests, and the memory that the largest of them takes.
  static RowReader::Cost cost(const Checkpoint& checkpoint, const Ops& ops,
                              std::span<const DiskRead> reads);

  // Enqueues. The reads are the layout's.
  void load(std::span<const DiskRead> reads, std::byte* slot, Stream& load_lane, Link& link);

 private:
  struct Lane {
    PanelReader reader;
    std::vector<PanelLoad> loads;
    uint64_t given = 0;              // bytes of the file
    std::unique_ptr<Stream> stream;  // null: the load lane. Last: its work ends before the reader
  };
  WeightTraffic& traffic_;
  const std::atomic<bool>& stopping_;
  StagingRing buffers_;
  int64_t use_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace hydrant
