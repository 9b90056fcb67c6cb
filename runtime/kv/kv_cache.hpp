// The cache on the device: the slots of every (layer, group), allocated once for the whole job.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "policies/policy.hpp"
#include "runtime/device/device.hpp"

namespace hydrant {

// Every place has room for the job's largest row, layer by layer. Scores, positions and victims lie
// where a row is attended: on the device, wherever its keys and values are at home, or on the host.
struct KvShape {
  int32_t groups = 1, rows_per_group = 1, kv_heads = 0, head_dim = 0;
  std::vector<int32_t> capacity;  // [layer]: slots stored per head of the largest row
  DType dtype = DType::f32;
  // [group]: so many of its places, the first, have their keys and values here; none given: all.
  std::vector<int32_t> resident = {};
  bool host_attends = false;  // rows that are not resident
  int32_t heads = 0;          // of queries; needed where the host attends

  int32_t resident_in(int32_t group) const {
    return resident.empty() ? rows_per_group : resident[size_t(group)];
  }
};

// Slots per head that a place has in a layer, and the bytes of its keys and values there.
int32_t slots_in(const KvShape& shape, size_t layer);
size_t place_bytes(const KvShape& shape, size_t layer, const Ops& ops);

// Of what is on the device. rows * layers * kv_heads * ceil16(capacity + 1) * (2 * head_dim *
// element + 8) when all rows are: keys and values as the backend keeps them, 4 bytes for a slot's
// score and 4 for its position. Throws out_of_memory when the number does not even fit its type.
size_t kv_bytes(const KvShape& shape, const Ops& ops);

class KvCache {
 public:
  KvCache(Device& device, const KvShape& shape);

  // Scores, positions and victims on the host, where it attends: exactly so many bytes.
  static size_t host_bytes(const KvShape& shape);

  // A view of the places that have their keys and values here, maybe none; valid as long as this
  // lives. Scores, positions and victims are those of all places that the device attends, plans
  // those of all places; they change with admit().
  CacheView home(int32_t layer, int32_t group) const;
  // The same for the places that the host attends; whoever has their keys and values adds them.
  CacheView host_side(int32_t layer, int32_t group) const;

  // Gives a place to a new row; plans [layer]. Nothing of the row before is ever read: a step reads
  // only what the row's own positions have written. No work on the place may be under way.
  void admit(int32_t group, int32_t place, std::span<const policy::RowPlan> plans);

  // Original positions in the slots of each KV head, ascending, after `processed` positions of the
  // row have been stored. Waits for the stream, and so for what was enqueued on it before.
  std::vector<std::vector<int32_t>> kept(Stream& stream, int32_t layer, int32_t group,
                                         int32_t place, int32_t processed) const;

  size_t bytes() const { return bytes_; }  // kv_bytes() and host_bytes() of the shape

 private:
  KvShape shape_;
  size_t bytes_;
  Buffer memory_, host_memory_;
  std::vector<policy::RowPlan> plans_;         // [layer, group, place]
  std::vector<CacheView> homes_, host_sides_;  // [layer, group]
};

}  // namespace hydrant
