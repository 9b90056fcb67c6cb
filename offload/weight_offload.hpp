// What is asked of offloaded weights, what memory that takes and what it moves.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "offload/placement.hpp"
#include "runtime/base/file.hpp"

namespace hydrant {

struct WeightOffload {
  Shares shares{};
  int slots = 2;  // of the staging ring: one is read, the others are filled ahead; at least 2
  // false: the reader's own lane moves what it is about to read, through a single slot.
  bool overlap = true;
  int disk_lanes = 8;  // reads of the file that are under way at a time
  // What is read arrives in buffers of this size in all, if that is enough for one a lane. More
  // than caches hold: a virtual disk writes with a core of the host's, which takes twice as long
  // over lines that are still in the caches of the cores that packed what was there before.
  size_t arriving = size_t{32} << 20;
  double link = 0;                    // bytes a second from host to device; 0: as fast as it goes
  Caching caching = Caching::direct;  // of the file
};

// All of it is allocated before the first step.
struct OffloadMemory {
  size_t device_homes = 0, ring = 0;   // on the device
  size_t host_homes = 0, staging = 0;  // on the host
  size_t arriving = 0;                 // of the staging; WeightOffload::arriving may make it less

  size_t on_device() const { return device_homes + ring; }
  size_t on_host() const { return host_homes + staging; }
};

// What weights have moved so far.
struct WeightTraffic {
  std::atomic<uint64_t> from_host = 0;  // host home -> device
  std::atomic<uint64_t> from_disk = 0;  // file -> device, as panels
  std::atomic<uint64_t> file = 0;       // read for that: whole blocks where reads are direct
  std::atomic<uint64_t> rows = 0;       // of tables, looked up in the file
};

// The same for one pass over all stages; rows depend on the tokens.
struct StepTraffic {
  uint64_t from_host = 0, from_disk = 0, file = 0;

  StepTraffic& operator+=(const StepTraffic& other) {
    from_host += other.from_host;
    from_disk += other.from_disk;
    file += other.file;
    return *this;
  }
  friend bool operator==(const StepTraffic&, const StepTraffic&) = default;
};

}  // namespace hydrant
