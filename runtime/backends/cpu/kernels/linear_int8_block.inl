// A block of x as int8 activations.

// One block of a packed tile of R rows.
template <int R>
struct XBlock {
  const std::byte* at;
  static constexpr size_t kBytes = R * (32 + 16);

  const std::byte* quad(int row, int j) const { return at + row * 32 + j * 4; }
  float scale(int row) const { return float_at(R * 32 + row * 4); }
  int minus_sum(int row) const { return int_at(R * 36 + row * 4); }       // of the 32 codes
  int minus_high_sum(int row) const { return int_at(R * 40 + row * 4); }  // of the second half
  float scaled_sum(int row) const { return float_at(R * 44 + row * 4); }

  float float_at(int offset) const {
    float f;
    memcpy(&f, at + offset, sizeof f);
    return f;
  }
  int int_at(int offset) const {
    int i;
    memcpy(&i, at + offset, sizeof i);
    return i;
  }
};

// The sums start where unsigned codes put the zero of the format: minus_sum * kZero.
template <DType F>
inline Ints zero_point(int minus_sum) {
  if constexpr (F == DType::q8_0) return shift_left<7>(broadcast_int(minus_sum));
  if constexpr (F == DType::q4_0) return shift_left<3>(broadcast_int(minus_sum));
  if constexpr (F == DType::q6_k) return shift_left<5>(broadcast_int(minus_sum));
  return broadcast_int(0);
}
