// Compiled once for each instruction path; see vec_generic.hpp.

// e^d of a logit less its log-sum-exp, so d is at most about 0: a polynomial for 2^r on |r| <= 1/2
// (relative error 1.1e-7, 1 exactly at 0). Powers of two need no second constant to reduce d, whose
// error, |d| 2^-24, only counts where next to nothing is left of the probability. Exactly 0 below
// 2^-125: what was never attended to must tie.
inline Lanes probability(Lanes d) {
  const Lanes least = broadcast(-125.0f);
  const Lanes power = d * broadcast(1.44269504f);
  const Lanes bounded = max(least, power), n = round(bounded), r = bounded - n;
  Lanes p = broadcast(1.32647145e-3f);
  for (const float c : {9.67151299e-3f, 5.55073395e-2f, 0.240222424f, 0.693147004f, 1.0f})
    p = fma(p, r, broadcast(c));
  return select(less(power, least), zero(), times_power_of_two(p, n));
}

void sum_mass(const HeadLogits& head, int32_t begin, int32_t count, float* mass) {
  for (int32_t i = 0; i < count; i += 16) {
    const float* logits = head.logits + begin + i;
    Lanes sum = zero();
    for (int32_t g = 0; g < head.query_heads; g++, logits += head.stride)
      sum = sum + probability(load(logits) - broadcast(head.lse[g]));
    store(mass + i, sum);
  }
}
