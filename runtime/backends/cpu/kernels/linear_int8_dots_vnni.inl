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
  // Two rows side by side, as a row's eight steps wait for each other; four do not fit the
  // registers.
  constexpr int G = R % 2 == 0 ? 2 : 1;
#pragma GCC unroll 16
  for (int row = 0; row < R; row += G) {
    const auto add_quads = [&](Ints(&dot)[G], int first, int last) {
#pragma GCC unroll 8
      for (int j = first; j < last; j++)
#pragma GCC unroll 2
        for (int g = 0; g < G; g++)
          dot[g] = add_dot(dot[g], w[j], broadcast_quad(x.quad(row + g, j)));
    };
    Ints dot[G];
    if constexpr (F == DType::q6_k) {
      Ints high[G];
#pragma GCC unroll 2
      for (int g = 0; g < G; g++) {
        high[g] = broadcast_int(x.high_start(row + g));
        dot[g] = broadcast_int(x.start(row + g)) - high[g];
      }
      add_quads(dot, 0, 4);
      add_quads(high, 4, 8);
#pragma GCC unroll 2
      for (int g = 0; g < G; g++)
        dot[g] = dot[g] * half_factor(head, b, 0) + high[g] * half_factor(head, b, 1);
    } else {
#pragma GCC unroll 2
      for (int g = 0; g < G; g++) dot[g] = broadcast_int(kHasMinimum<F> ? 0 : x.start(row + g));
      add_quads(dot, 0, 8);
    }
#pragma GCC unroll 2
    for (int g = 0; g < G; g++) add(row + g, dot[g]);
  }
}
