#include "runtime/apps/bandwidth.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

constexpr size_t kBytes = size_t{256} << 20;  // more than the last-level cache that two cores share
constexpr int kPasses = 5, kCopies = 4;
using Clock = std::chrono::steady_clock;

// On huge pages, as weights are.
class Pages {
 public:
  Pages()
      : data_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED)
      fail(Fault::out_of_memory,
           "the memory's speed cannot be measured: {} bytes wanted for that, {}", kBytes,
           std::strerror(errno));
    ::madvise(data_, kBytes, MADV_HUGEPAGE);
    std::fill_n(words(), kBytes / sizeof(uint64_t), uint64_t{1});
  }
  ~Pages() { ::munmap(data_, kBytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  uint64_t* words() const { return static_cast<uint64_t*>(data_); }

 private:
  void* data_;
};

// Eight sums, so that no addition waits for the one before.
uint64_t read_words(const uint64_t* words, size_t count) {
  std::array<uint64_t, 8> sums{};
  for (size_t i = 0; i + 8 <= count; i += 8)
    for (size_t j = 0; j < 8; j++) sums[j] ^= words[i + j];
  uint64_t all = 0;
  for (const uint64_t s : sums) all ^= s;
  return all;
}

double host_bandwidth(int threads) {
  const Pages pages;
  const size_t part = kBytes / sizeof(uint64_t) / size_t(threads) / 8 * 8;
  std::atomic<uint64_t> sink{0};  // what is read must have a use
  double best = 0;
  for (int pass = 0; pass < kPasses; pass++) {
    const auto begin = Clock::now();
    {
      std::vector<std::jthread> team;
      for (int t = 0; t < threads; t++)
        team.emplace_back([&, t] { sink ^= read_words(pages.words() + size_t(t) * part, part); });
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, double(part * size_t(threads) * sizeof(uint64_t)) / seconds);
  }
  return best;
}

}  // namespace

double memory_bandwidth(Device& device) {
  if (device.is_host()) return host_bandwidth(device.threads());
  const Buffer from = device.allocate(Memory::device, kBytes,
                                      "bytes to measure the memory's speed with"),
               to = device.allocate(Memory::device, kBytes,
                                    "bytes to measure the memory's speed with");
  const auto stream = device.make_stream("compute", /*inline_work=*/true);
  double best = 0;
  for (int pass = 0; pass < kPasses; pass++) {
    const auto begin = Clock::now();
    // Several in a row: a wait for one costs as much as a tenth of it.
    for (int i = 0; i < kCopies; i++) stream->copy(to.data(), from.data(), kBytes);
    stream->synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, kCopies * 2 * double(kBytes) / seconds);
  }
  return best;
}

}  // namespace hydrant
