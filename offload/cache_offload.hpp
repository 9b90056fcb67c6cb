// What is asked of offloaded caches, and what they move.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "offload/shares.hpp"
#include "runtime/base/file.hpp"

namespace hydrant {

// Where rows that are at home elsewhere are attended. device: they pass through a ring there. host:
// where they are, or, if that is the file, in buffers on the host, by the device if it computes in
// host memory, else by another one. automatic: host where the device can, else device.
enum class CacheCompute : uint8_t { automatic, device, host };

// What does requests of the file. io_uring: threads, with a warning, where the system does not
// permit it.
enum class DiskEngine : uint8_t { io_uring, threads };

struct CacheOffload {
  Shares shares{};  // of the bytes of rows
  int slots = 2;    // of each ring: one is read, the others are filled ahead; at least 2
  // false: the reader's own lane moves what it is about to read, through a single slot.
  bool overlap = true;
  CacheCompute compute = CacheCompute::automatic;
  int host_threads = 0;  // of the other device; 0: all usable cores
  double link = 0;       // bytes a second between host and device, each way; 0: as fast as it goes
  std::string folder = "/var/tmp";    // of the file: it has no name, and ends with the run
  Caching caching = Caching::direct;  // of the file
  DiskEngine disk_engine = DiskEngine::io_uring;
  int disk_requests = 8;  // under way at a time
};

// What caches have moved so far.
struct CacheTraffic {
  std::atomic<uint64_t> to_device = 0, to_host = 0;  // over the link
  std::atomic<uint64_t> read = 0, written = 0;       // of the file
};

// The same for a part of a step, before it is done. What is written for rows that decode depends on
// who leaves; `written` is of prompts alone.
struct CacheMoves {
  uint64_t to_device = 0, to_host = 0, read = 0, written = 0;

  CacheMoves& operator+=(const CacheMoves& other);
  friend bool operator==(const CacheMoves&, const CacheMoves&) = default;
};

}  // namespace hydrant
