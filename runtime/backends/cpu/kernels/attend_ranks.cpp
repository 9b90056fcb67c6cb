#include "runtime/backends/cpu/kernels/attend_ranks.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

// One bit for each position, and how many bits are set before each word: time grows with the slots
// and with a 64th of the positions, without sorting.
struct Word {
  uint64_t bits;
  int64_t before;
};

size_t words(int32_t last_position) { return size_t(last_position) / 64 + 1; }

}  // namespace

size_t rank_workspace_bytes(int32_t last_position) { return words(last_position) * sizeof(Word); }

void rank_positions(const int32_t* positions, int32_t count, int32_t last_position, void* workspace,
                    int32_t* ranks) {
  Word* const all = static_cast<Word*>(workspace);
  const size_t size = words(last_position);
  std::fill_n(all, size, Word{});
  for (int32_t i = 0; i < count; i++) {
    const int32_t p = positions[i];
    ensure(p >= 0 && p <= last_position, "slot {} holds position {}, not one of 0 to {}", i, p,
           last_position);
    all[size_t(p) / 64].bits |= uint64_t{1} << (p % 64);
  }
  int64_t before = 0;
  for (size_t w = 0; w < size; w++) {
    all[w].before = before;
    before += std::popcount(all[w].bits);
  }
  ensure(before == count, "{} live slots hold only {} different positions", count, before);
  for (int32_t i = 0; i < count; i++) {
    const Word& word = all[size_t(positions[i]) / 64];
    const uint64_t below = (uint64_t{1} << (positions[i] % 64)) - 1;
    ranks[i] = int32_t(word.before + std::popcount(word.bits & below));
  }
}

}  // namespace hydrant::cpu
