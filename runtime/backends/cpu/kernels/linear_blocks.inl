// Quantised weights: what the blocks of a panel mean, and their exact products with f32
// activations.

// Bits to the left, or to the right where negative.
template <int bits>
[[gnu::always_inline]] inline Ints shift(Ints a) {
  if constexpr (bits >= 0)
    return shift_left<bits>(a);
  else
    return shift_right<-bits>(a);
}

// The four codes of quad j in every lane as unsigned bytes, times 2^up.
template <DType F, int j, int up = 0>
[[gnu::always_inline]] inline Ints quad_codes(const std::byte* codes) {
  constexpr auto in_each_byte = [](int bits) { return int(unsigned(bits << up) * 0x01010101u); };
  if constexpr (F == DType::q8_0) return load_ints(codes + j * 64);
  const Ints nibbles =
      shift<up - j / 4 * 4>(load_ints(codes + j % 4 * 64)) & broadcast_int(in_each_byte(15));
  if constexpr (F != DType::q6_k) return nibbles;
  const Ints two = shift<up + 4 - j % 4 * 2>(load_ints(codes + 256 + j / 4 * 64));
  return nibbles | (two & broadcast_int(in_each_byte(48)));
}

template <DType F>
constexpr bool kHasMinimum = F == DType::q4_1 || F == DType::q4_k;
template <DType F>
constexpr int kZero = F == DType::q8_0   ? 128
                      : F == DType::q4_0 ? 8
                      : F == DType::q6_k ? 32
                                         : 0;

// A block's scale in f32; of q6_k what its two factors have in common.
template <DType F>
[[gnu::always_inline]] inline Lanes block_scale(const std::byte* head, int64_t b) {
  if constexpr (F == DType::q8_0 || F == DType::q4_0) return load_f16(head + b % 2 * 32);
  const Lanes d = load_f16(head);
  if constexpr (F == DType::q4_k) return d * to_lanes(load_u8(head + kFactors + b % 8 * 32));
  return d;
}
// What every element of a block has beyond scale * code.
template <DType F>
[[gnu::always_inline]] inline Lanes block_minimum(const std::byte* head, int64_t b) {
  const Lanes m = load_f16(head + 32);
  if constexpr (F != DType::q4_k) return m;
  return m * to_lanes(load_u8(head + kFactors + b % 8 * 32 + 16));
}
[[gnu::always_inline]] inline Ints half_factor(const std::byte* head, int64_t b,
                                               int half) {  // q6_k
  return load_i8(head + kFactors + b % 8 * 32 + half * 16);
}

// value = code * scale + offset, rounded once at most: the product is exact in every format.
struct Line {
  Lanes scale, offset;
};
template <DType F>
[[gnu::always_inline]] inline Line half_block_line(const std::byte* head, int64_t b, int half) {
  Lanes scale = block_scale<F>(head, b);
  if constexpr (F == DType::q6_k) scale = scale * to_lanes(half_factor(head, b, half));
  if constexpr (kHasMinimum<F>) return {scale, block_minimum<F>(head, b)};
  return {scale, scale * broadcast(float(-kZero<F>))};
}

// One quad against all rows: four steps of every chain.
template <DType F, int j, int R, int P>
[[gnu::always_inline]] inline void add_quad_products(const float* x, const std::byte* codes,
                                                     size_t panel_bytes, const Line (&line)[P],
                                                     Lanes (&acc)[R][P]) {
  Ints quad[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; p++) quad[p] = quad_codes<F, j>(codes + size_t(p) * panel_bytes);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    Lanes value[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) {
      value[p] = fma(to_lanes(quad[p] & broadcast_int(255)), line[p].scale, line[p].offset);
      quad[p] = shift_right<8>(quad[p]);
    }
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) {
      const Lanes xv = broadcast(x[(j * 4 + i) * R + r]);
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) acc[r][p] = fma(value[p], xv, acc[r][p]);
    }
  }
}

template <DType F, int half, int R, int P>
[[gnu::always_inline]] inline void add_half_block_products(const float* x, const std::byte* head,
                                                           const std::byte* codes, int64_t b,
                                                           size_t panel_bytes, Lanes (&acc)[R][P]) {
  Line line[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; p++) line[p] = half_block_line<F>(head + size_t(p) * panel_bytes, b, half);
  add_quad_products<F, half * 4>(x, codes, panel_bytes, line, acc);
  add_quad_products<F, half * 4 + 1>(x, codes, panel_bytes, line, acc);
  add_quad_products<F, half * 4 + 2>(x, codes, panel_bytes, line, acc);
  add_quad_products<F, half * 4 + 3>(x, codes, panel_bytes, line, acc);
}

template <DType F, int R, int P>
[[gnu::always_inline]] inline void add_block_products(const float* x, const std::byte* panels,
                                                      size_t panel_bytes, int64_t blocks,
                                                      Lanes (&acc)[R][P]) {
  constexpr BlockLayout layout = block_layout(F);
  for (int64_t b = 0; b < blocks; b++, x += kBlock * R) {
    const std::byte *head = panels + layout.head(b), *codes = panels + layout.codes(b);
    add_half_block_products<F, 0>(x, head, codes, b, panel_bytes, acc);
    add_half_block_products<F, 1>(x, head, codes, b, panel_bytes, acc);
  }
}
