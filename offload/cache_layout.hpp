// Where each byte of an offloaded cache lies and moves: worked out once for a job.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "offload/cache_offload.hpp"
#include "runtime/engine/feed.hpp"

namespace hydrant {

// Places of a group, in this order.
struct RowHomes {
  int32_t device = 0, host = 0, disk = 0;

  int32_t first_on_disk() const { return device + host; }
  friend bool operator==(const RowHomes&, const RowHomes&) = default;
};

// [group]. All places of a job are equally large, so a share of the bytes is a share of the rows;
// it holds within one row, over the groups (what rounding leaves over goes to the next one).
std::vector<RowHomes> place_rows(const Shares& shares, int32_t groups, int32_t rows_per_group);

class CacheLayout {
 public:
  static constexpr size_t kUnit = File::kBlock;  // of what is written to the file, and its borders

  // staged: rows of the host home pass through the ring on the device as well. ops: of whoever
  // attends rows that are not at home on the device. written_whole: kernels do not reach the host
  // home, so that all that a staged row has goes back there after a step.
  CacheLayout(const KvShape& shape, const Shares& shares, bool staged, const Ops& ops,
              bool written_whole = false);

  const RowHomes& homes(int32_t group) const { return homes_[size_t(group)]; }
  const KvShape& shape() const { return shape_; }
  bool staged() const { return staged_; }
  size_t run_bytes() const { return run_bytes_; }
  size_t head_bytes(int32_t layer) const { return head_bytes_[size_t(layer)]; }
  size_t place_bytes(int32_t layer) const { return head_bytes(layer) * size_t(shape_.kv_heads); }
  // A row's keys and values in one layer, in the file and in its image on the host.
  size_t block_bytes(int32_t layer) const;

  // Of the group's first row there.
  size_t host_at(int32_t layer, int32_t group) const { return host_at_[index(layer, group)]; }
  size_t file_at(int32_t layer, int32_t group) const { return file_at_[index(layer, group)]; }
  size_t host_bytes() const { return host_bytes_; }
  size_t file_bytes() const { return file_bytes_; }
  size_t slot_bytes() const { return slot_bytes_; }    // of the ring on the device
  size_t image_bytes() const { return image_bytes_; }  // of the ring of images

  // A view of the group's rows there, whose first one lies at `rows`, place_bytes() or
  // block_bytes() apart. scores: any view of the layer and group that has those of the rows.
  CacheView host_view(CacheView scores, int32_t layer, int32_t group, std::byte* rows) const;
  CacheView disk_view(CacheView scores, int32_t layer, int32_t group, std::byte* rows,
                      size_t place_bytes) const;

  // What a row moves in one layer: the token at `position` decoded; a prompt of `length` stored.
  CacheMoves decode_moves(int32_t layer, int32_t group, int32_t place, int32_t position,
                          const policy::SlotLayout& slots) const;
  CacheMoves prompt_moves(int32_t layer, int32_t group, int32_t place, int32_t length,
                          const policy::SlotLayout& slots) const;
  // Bytes that go to the file for a decoded token of a row there, on average over many, when who
  // leaves is anywhere among the heavy slots and the token itself: the tail keeps the last two runs
  // of each head.
  double mean_written(const policy::SlotLayout& slots, int32_t position) const;

 private:
  size_t index(int32_t layer, int32_t group) const {
    return size_t(layer) * homes_.size() + size_t(group);
  }

  CacheView view(CacheView scores, int32_t layer, std::byte* rows, size_t place_bytes) const;
  // Of the tokens of a row that the host attends: over the bus and back.
  CacheMoves token_moves(int32_t tokens) const;

  KvShape shape_;
  bool staged_, written_whole_;
  std::vector<RowHomes> homes_;
  size_t run_bytes_;
  std::vector<size_t> head_bytes_;         // [layer]
  std::vector<size_t> host_at_, file_at_;  // [layer, group]
  size_t host_bytes_ = 0, file_bytes_ = 0, slot_bytes_ = 0, image_bytes_ = 0;
};

// Runs that hold what is stored before the token at `position` comes.
int32_t filled_runs(const policy::SlotLayout& slots, int32_t position);

}  // namespace hydrant
