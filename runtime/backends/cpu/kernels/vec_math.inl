// What follows from the primitives of a path; included into its namespace.

// Relative error below 3e-7. 0 below -86.6 (where the result would leave the normal floats), and
// of -inf; inf above 88.72; NaN stays.
inline Lanes exp(Lanes x) {
  const Lanes least = broadcast(-86.6f);
  const Lanes bounded = max(least, min(broadcast(89.0f), x));
  const Lanes n = round(bounded * broadcast(1.44269504f));
  Lanes r = fma(n, broadcast(-0.693359375f), bounded);  // log 2 in two parts, the first exact
  r = fma(n, broadcast(2.12194440e-4f), r);
  Lanes p = broadcast(1.0f / 5040);
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    p = fma(p, r, broadcast(c));
  return select(less(x, least), zero(), times_power_of_two(p, n));
}

inline Pair make_pair(float even, float odd) {
  return {bf16_to_f32(f32_to_bf16(even)), bf16_to_f32(f32_to_bf16(odd))};
}
inline Pairs broadcast(Pair x) { return {broadcast(x.even), broadcast(x.odd)}; }
// 16 neighbours of k of one row -> 8 pairs, rounded
inline void store_pairs(Pair* to, Lanes a) {
  uint16_t rounded[16];
  store_bf16(rounded, a);
  store(&to->even, load_bf16(rounded));
}

// 16 elements of a plain float type, to and from f32
template <DType type>
Lanes load_as(const void* p) {
  if constexpr (type == DType::f32) return load(static_cast<const float*>(p));
  if constexpr (type == DType::f16) return load_f16(p);
  if constexpr (type == DType::bf16) return load_bf16(p);
}
template <DType type>
void store_as(void* p, Lanes a) {
  static_assert(type == DType::f32 || type == DType::f16 || type == DType::bf16);
  if constexpr (type == DType::f32) store(static_cast<float*>(p), a);
  if constexpr (type == DType::f16) store_f16(p, a);
  if constexpr (type == DType::bf16) store_bf16(p, a);
}
