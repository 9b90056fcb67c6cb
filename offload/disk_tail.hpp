// What rows on disk hold that the file does not have yet.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hydrant {

// Units of one row's block in one layer, in host memory: the newest tokens gather here until their
// unit is full or was not touched for the longest time. So most of what a token changes is written
// once for sixteen of them.
class DiskTail {
 public:
  // `memory` holds `room` units of `unit` bytes.
  DiskTail(std::byte* memory, size_t room, size_t unit)
      : memory_(memory), unit_(unit), kept_(room) {}

  struct Leaving {
    size_t unit;
    std::byte* bytes;
  };
  // `changed` are to be kept, no more than there is room: adds to `leaving` what has to go to the
  // file for that, before update() overwrites it.
  void make_room(std::span<const size_t> changed, std::vector<Leaving>& leaving);
  // The changed units are now as they are in the row's image.
  void update(std::span<const size_t> changed, const std::byte* image);
  // Brings a block as it was read from the file up to date.
  void restore(std::byte* image) const;
  void clear();  // the file has all of it

 private:
  struct Kept {
    int64_t unit = -1;  // -1: none
    int64_t touched = 0;
  };
  std::byte* bytes(size_t index) const { return memory_ + index * unit_; }
  Kept* find(int64_t unit);

  std::byte* memory_;
  size_t unit_;
  std::vector<Kept> kept_;
  int64_t now_ = 0;
};

}  // namespace hydrant
