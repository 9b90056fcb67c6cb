// Compiled once for each instruction path; see vec_generic.hpp.

void sum_mass(const HeadLogits& head, int32_t begin, int32_t count, float* mass) {
  for (int32_t i = 0; i < count; i += 16) {
    const float* logits = head.logits + begin + i;
    Lanes sum = zero();
    for (int32_t g = 0; g < head.query_heads; g++, logits += head.stride)
      sum = sum + exp(load(logits) - broadcast(head.lse[g]));
    store(mass + i, sum);
  }
}
