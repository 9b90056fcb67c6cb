// Numbers for tests: the same on every machine and run.
#pragma once
#include <cstdint>
#include <vector>

namespace hydrant::test {

// splitmix64
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return int64_t(bits() % uint64_t(n)); }
  float uniform(float low, float high) {
    return low + (high - low) * float(double(bits() >> 11) * 0x1p-53);
  }
  std::vector<float> floats(int64_t count, float low = -1, float high = 1) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = uniform(low, high);
    return values;
  }

 private:
  uint64_t state_;
};

}  // namespace hydrant::test
