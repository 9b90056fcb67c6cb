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

// Some query heads of some positions against double precision; `every` keeps the oracle quick.
void check_out(const PromptRun& prompt, const PromptRun::Result& r, int32_t every);
// Column sums in double precision from the definition, and their error bounds: each probability is
// off by a factor of at most e^(logit error + lse error) and exp's own 3e-7; adding n of them in
// f32 rounds n times by at most 2^-24 of the sum.
void check_columns(const PromptRun& prompt, const Columns& columns);

}  // namespace hydrant::test
