// A prompt run through attention chunk by chunk, as a layer does it.
#pragma once
#include "test/ops/attend_cases.hpp"

namespace hydrant::test {

struct Columns {
  std::vector<float> sum, last;  // [kv_head][length]
};

struct PromptRun {
  Home& home;  // slot = position; slots from `length` on are never put
  int32_t length = 0;
  std::vector<float> q;  // [length][heads][d]
  float scale = 0.25f;

  // Chunks of `chunk` tokens, or of the sizes given, the last one cut to fit.
  std::vector<int32_t> chunks(int32_t chunk) const;

  struct Result {
    std::vector<float> out, lse;
    Columns columns;
    size_t attend_bytes = 0, summarize_bytes = 0;
  };
  Result run(const DeviceChoice& choice, const std::vector<int32_t>& chunks) const;
  Result run(cpu::Isa isa, int threads, const std::vector<int32_t>& chunks) const;
  std::vector<double> query(int32_t position, int32_t head) const;
};

}  // namespace hydrant::test
