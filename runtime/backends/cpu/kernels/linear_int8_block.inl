// A block of x as int8 activations.

// One block of a packed tile of R rows.
template <int R>
struct XBlock {
  const std::byte* at;
  static constexpr size_t kBytes = R * (32 + 16);

  const std::byte* quad(int row, int j) const { return at + row * 32 + j * 4; }
  float scale(int row) const { return float_at(R * 32 + row * 4); }
  // Where the sum of unsigned codes begins whose zero is at 128: -128 times the sum of the row's
  // codes, of all and of the second half.
  int start(int row) const { return int_at(R * 36 + row * 4); }
  int high_start(int row) const { return int_at(R * 40 + row * 4); }
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
