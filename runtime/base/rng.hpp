// Random numbers by counter: a draw is a function of its key and counter and of nothing that was
// drawn before.
#pragma once
#include <array>
#include <cstdint>

namespace hydrant {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; round++) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

// The draw number `index` of stream `stream`, uniform in [0, 1) with 53 bits.
constexpr double uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  const auto bits =
      philox({uint32_t(index), uint32_t(index >> 32), uint32_t(stream), uint32_t(stream >> 32)},
             {uint32_t(seed), uint32_t(seed >> 32)});
  return double((uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
}

}  // namespace hydrant
