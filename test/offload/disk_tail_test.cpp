// The tail of a row on disk: the file and it together are the row, and little is written.
#include "offload/disk_tail.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

constexpr size_t kUnit = 8;

// A row's block as it is, its file, and the tail between them.
class Row {
 public:
  Row(size_t units, size_t room)
      : file(units * kUnit),
        block(units * kUnit),
        memory_(room * kUnit),
        tail(memory_.data(), room, kUnit) {}

  // The units get new bytes; what the tail has no room for is written.
  void change(const std::set<size_t>& units, Random& random) {
    const std::vector<size_t> changed(units.begin(), units.end());
    for (const size_t unit : changed)
      for (size_t i = 0; i < kUnit; i++) block[unit * kUnit + i] = std::byte(random.bits());
    std::vector<DiskTail::Leaving> leaving;
    tail.make_room(changed, leaving);
    for (const DiskTail::Leaving& l : leaving) {
      REQUIRE(!units.contains(l.unit));
      std::memcpy(file.data() + l.unit * kUnit, l.bytes, kUnit);
      written++;
    }
    tail.update(changed, block.data());
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> image = file;
    tail.restore(image.data());
    return image;
  }

  std::vector<std::byte> file, block;
  size_t written = 0;

 private:
  std::vector<std::byte> memory_;

 public:
  DiskTail tail;
};

}  // namespace

TEST_CASE("file and tail together are the row") {
  Random random(31);
  for (int trial = 0; trial < 50; trial++) {
    const auto units = size_t(1 + random.below(20)), room = size_t(1 + random.below(8));
    Row row(units, room);
    for (int step = 0; step < 60; step++) {
      std::set<size_t> changed;
      for (int64_t i = random.below(int64_t(room) + 1); i > 0; i--)
        changed.insert(size_t(random.below(int64_t(units))));
      row.change(changed, random);
      REQUIRE(row.read() == row.block);
      if (random.below(20) > 0) continue;
      row.file = row.block;  // as a prompt is stored
      row.tail.clear();
      REQUIRE(row.read() == row.block);
    }
  }
}

TEST_CASE("a unit that is filled token by token is written once, a while after it is full") {
  Random random(32);
  Row row(16, 2);
  for (size_t token = 0; token < 16 * 16; token++) row.change({token / 16}, random);
  CHECK(row.written == 14);  // two are still in the tail
  // The unit that is filled stays, beside another in each step.
  Row beside(16, 2);
  for (size_t token = 0; token < 160; token++) beside.change({0, 1 + token % 15}, random);
  CHECK(beside.written == 159);
}
