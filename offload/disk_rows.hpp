// Rows of tables, looked up in the file.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "offload/staging_ring.hpp"
#include "offload/weight_layout.hpp"
#include "offload/weight_offload.hpp"

namespace hydrant {

// A step wants few of a table's rows, so these alone are read, as the step asks for them: into
// small tables in host memory, which embed() reads in place. Their lane is not the one that loads
// stages, whose queue may be a stage long.
class DiskRows {
 public:
  static constexpr int kSlots = 2;
  static constexpr int64_t kRows = 64;  // looked up at once

  // `memory` holds kSlots times slot_bytes(). The others outlive this. Without a lane of its own
  // the reader's does the work. After `stopping` is set nothing more is read.
  DiskRows(const Checkpoint& checkpoint, Device& device, const WeightLayout& layout, bool own_lane,
           std::byte* memory, WeightTraffic& traffic, const std::atomic<bool>& stopping);

  static size_t slot_bytes(const WeightLayout& layout);    // 0: no table has rows in the file
  static size_t reader_bytes(const WeightLayout& layout);  // memory of the reader

  // Enqueues the look-up of what the table has in the file; args as of WeightFeed::look_up.
  void look_up(const MatrixPlace& table, const EmbedArgs& args, Stream& reader);

 private:
  // Rows of a table that are in the file; -1: elsewhere. Listed while the caller's indices are sure
  // to be there, not when the lane comes to read.
  struct Wanted {
    std::array<int32_t, size_t(kRows)> rows;
    size_t count = 0, here = 0;
  };
  static Wanted list(const MatrixPlace& table, const EmbedArgs& args);
  void read(const MatrixPlace& table, const Wanted& wanted, std::byte* slot);

  Ops& ops_;
  WeightTraffic& traffic_;
  const std::atomic<bool>& stopping_;
  StagingRing slots_;
  int64_t use_ = 0;
  PanelReader file_;
  std::vector<int64_t> rows_;
  std::unique_ptr<Stream> lane_;  // may be null; last: its work ends before what that uses
};

}  // namespace hydrant
