// Activation functions over 16 lanes; included into the namespace of a path.

// Phi, the normal distribution function, within 2e-7 (Abramowitz and Stegun 7.1.26 for erf).
inline Lanes normal_distribution(Lanes x) {
  const Lanes z = abs(x) * broadcast(0.707106781f);
  const Lanes t = broadcast(1.0f) / fma(broadcast(0.3275911f), z, broadcast(1.0f));
  Lanes p = broadcast(1.061405429f);
  for (const float c : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f})
    p = fma(p, t, broadcast(c));
  const Lanes tail = broadcast(0.5f) * p * t * exp(zero() - z * z);  // of |x| and beyond
  return select(less(x, zero()), tail, broadcast(1.0f) - tail);
}

inline Lanes sigmoid_times(Lanes x, Lanes of) { return x / (broadcast(1.0f) + exp(zero() - of)); }

template <Activation kind>
Lanes activate(Lanes x) {
  if constexpr (kind == Activation::none) return x;
  if constexpr (kind == Activation::relu) return max(zero(), x);  // a NaN stays
  if constexpr (kind == Activation::silu) return sigmoid_times(x, x);
  if constexpr (kind == Activation::gelu) return x * normal_distribution(x);
  if constexpr (kind == Activation::gelu_tanh) {  // (1 + tanh(u)) / 2 = sigmoid(2 u)
    const Lanes u = fma(x * x * x, broadcast(0.044715f), x);
    return sigmoid_times(x, u * broadcast(1.59576912f));
  }
}
