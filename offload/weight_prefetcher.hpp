// Weights that are larger than the device: the feed that brings them as they are needed.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "offload/disk_panels.hpp"
#include "offload/disk_rows.hpp"
#include "offload/link.hpp"
#include "offload/staging_ring.hpp"
#include "offload/weight_layout.hpp"
#include "offload/weight_offload.hpp"
#include "runtime/engine/feed.hpp"

namespace hydrant {

// What is at home on the device stays there; what a stage has elsewhere passes through a slot of
// the ring, once a step whatever the number of groups. Stages follow each other in a circle, so the
// slots are filled in that order, as far ahead as there are free ones. A small stage passes in the
// slot of the one before it.
//
// A matrix with panels at home and panels in the slot is given as two runs (LayerWeights::rest): a
// product takes runs side by side anyway, so neither a copy on the device nor another kernel is
// needed. Tables of stage 0 are looked up where they lie: on the device, in host memory in place,
// in the file row by row.
//
// Nothing but the rings' events orders lanes. A failure on any lane reaches whoever waits for what
// it was to bring, and stays: every later acquire fails with it. The file is never written, nor
// copied whole: what it has for the device is read from it again in each step.
class WeightPrefetcher final : public WeightFeed {
 public:
  // Loads the homes. Checkpoint, plan and device outlive it. Throws bad_config for options that
  // cannot be, out_of_memory before anything is read, and as load_weights.
  WeightPrefetcher(const Checkpoint& checkpoint, const ModelSpec& spec, const WeightPlan& plan,
                   Device& device, const WeightOffload& options, const LoadProgress& progress = {});
  ~WeightPrefetcher() override;  // reads that have not begun are left out

  // By the same layout. Reads nothing.
  static OffloadMemory memory(const Checkpoint& checkpoint, const ModelSpec& spec,
                              const WeightPlan& plan, const Ops& ops, const WeightOffload& options);

  // All but the staging, which takes a look at the file.
  static OffloadMemory unstaged_memory(const WeightPlan& plan, const ModelSpec& spec,
                                       const WeightOffload& options);

  void prefetch(int stage) override;
  LayerWeights acquire(int stage, Stream& reader) override;
  void look_up(Matrix table, EmbedArgs args, Stream& reader) override;
  void release(int stage, Stream& reader) override;

  const OffloadMemory& memory() const { return memory_; }
  const WeightTraffic& traffic() const { return traffic_; }
  Link& link() { return link_; }
  StepTraffic step_traffic(int stage) const;  // of one stage: what filling its slot moves
  StepTraffic step_traffic() const;           // of all
  // Between steps: waits for what is being filled ahead, of which ahead() are the bytes. Then
  // traffic() is what has moved, and has all of it.
  void settle();
  StepTraffic ahead() const;

 private:
  void set_views(const WeightPlan& plan);
  const StageLayout& layout(int stage) const { return layout_.stages[size_t(stage)]; }
  bool moves(int stage) const { return layout(stage).slot_bytes > 0; }
  std::span<const int> passengers(int slot_of) const { return passengers_[size_t(slot_of)]; }
  void restart(int owner);
  int after(int owner) const;
  void fill(int owner, Stream& lane);

  WeightOffload options_;
  Checkpoint file_;  // for reading again and again
  Ops& ops_;
  WeightLayout layout_;
  OffloadMemory memory_;
  Buffer on_device_, on_host_, read_in_place_;
  std::vector<LayerWeights> views_;    // [stage], of what stays
  std::vector<StepTraffic> expected_;  // [stage]
  WeightTraffic traffic_;
  std::atomic<bool> stopping_ = false;
  Link link_;
  std::vector<std::vector<int>> passengers_;  // [stage]: those that pass in its slot, in order
  // What is in the ring, in the order of filling, by the stage that each slot is of: the front one
  // is being read or is the next to be.
  std::optional<StagingRing> ring_;
  std::deque<int> held_;
  int64_t front_use_ = 0;
  int next_ = 0;  // to be filled
  std::byte* device_home_ = nullptr;
  HostHome host_home_;
  std::optional<DiskPanels> disk_panels_;
  std::optional<DiskRows> disk_rows_;
  std::unique_ptr<Stream> lane_;  // null without overlap; last: its work ends before what that uses
};

}  // namespace hydrant
