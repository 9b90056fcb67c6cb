// Device memory through which things pass, a slot at a time.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/device/device.hpp"

namespace hydrant {

// Slots are used in turn: the n-th thing takes slot n modulo their number. Two edges order each
// slot's uses: `ready`, reads come after the fill; `free`, the next fill after the reads. The
// memory is `slots` times `slot_bytes`, given by the caller.
class StagingRing {
 public:
  StagingRing(Device& device, std::byte* memory, int slots, size_t slot_bytes);

  int slots() const { return int(slots_.size()); }
  std::byte* data(int64_t use) const { return slot(use).data; }
  // The filler's later work may write the slot; and now it has.
  void begin_fill(int64_t use, Stream& filler) const { filler.wait(*slot(use).free); }
  void end_fill(int64_t use, Stream& filler) const { filler.record(*slot(use).ready); }
  // The reader's later work may read it; and all that does is enqueued.
  void begin_read(int64_t use, Stream& reader) const { reader.wait(*slot(use).ready); }
  void end_read(int64_t use, Stream& reader) const { reader.record(*slot(use).free); }

 private:
  struct Slot {
    std::byte* data;
    std::unique_ptr<Event> ready, free;
  };
  const Slot& slot(int64_t use) const { return slots_[size_t(use) % slots_.size()]; }

  std::vector<Slot> slots_;
};

}  // namespace hydrant
