// Block dots with AVX-512 VNNI: the eight quads of weights stay in registers, rows pass by.

// Codes are multiplied up until their zero is at 128, as the packed rows have it; the scale makes
// up for it.
template <DType F>
constexpr int kUp = F == DType::q4_0   ? 4
                    : F == DType::q6_k ? 2
                                       : 0;

template <DType F, int R, class Add>
[[gnu::always_inline]] inline void each_block_dot(const XBlock<R>& x, const std::byte* head,
                                                  const std::byte* codes, int64_t b,
                                                  const Add& add) {
  constexpr int up = kUp<F>;
  const Ints w[8] = {quad_codes<F, 0, up>(codes), quad_codes<F, 1, up>(codes),
                     quad_codes<F, 2, up>(codes), quad_codes<F, 3, up>(codes),
                     quad_codes<F, 4, up>(codes), quad_codes<F, 5, up>(codes),
                     quad_codes<F, 6, up>(codes), quad_codes<F, 7, up>(codes)};
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    const auto quads = [&](Ints dot, int first, int last) {
#pragma GCC unroll 8
      for (int j = first; j < last; j++) dot = add_dot(dot, w[j], broadcast_quad(x.quad(r, j)));
      return dot;
    };
    if constexpr (F == DType::q6_k) {
      const Ints high = broadcast_int(x.high_start(r)), low = broadcast_int(x.start(r)) - high;
      add(r,
          quads(low, 0, 4) * half_factor(head, b, 0) + quads(high, 4, 8) * half_factor(head, b, 1));
    } else {
      add(r, quads(broadcast_int(kHasMinimum<F> ? 0 : x.start(r)), 0, 8));
    }
  }
}
