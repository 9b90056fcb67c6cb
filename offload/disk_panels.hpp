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

// Runs of panels are read and packed into a ring of host buffers, each on the next of the disk
// lanes, and copied from there to the slot by the load lane. Runs are read ahead of the slot's
// `free`: they need only a buffer.
class DiskPanels {
 public:
  static constexpr int kBuffersPerLane = 2;

  // `memory` holds kBuffersPerLane buffers a lane, each of the layout's largest run. The others
  // outlive this. With no lanes the load lane reads as well. After `stopping` is set nothing more
  // is read.
  DiskPanels(const Checkpoint& checkpoint, Device& device, const WeightLayout& layout, int lanes,
             std::byte* memory, WeightTraffic& traffic, const std::atomic<bool>& stopping);

  static size_t buffers(int lanes) { return size_t(kBuffersPerLane * std::max(lanes, 1)); }

  // What the runs move, and the memory that a lane needs to read any of them.
  static RowReader::Cost cost(const Checkpoint& checkpoint, const Ops& ops,
                              std::span<const DiskRun> runs);

  // Enqueues.
  void load(std::span<const DiskRun> runs, std::byte* slot, Stream& load_lane, Link& link);

 private:
  struct Lane {
    PanelReader reader;
    std::unique_ptr<Stream> stream;  // null: the load lane. Last: its work ends before the reader
  };
  WeightTraffic& traffic_;
  const std::atomic<bool>& stopping_;
  StagingRing buffers_;
  int64_t use_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace hydrant
