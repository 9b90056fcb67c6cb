// Block dots with AVX-512 VNNI: the eight quads of weights stay in registers, rows pass by.

template <DType F, int R, class Add>
inline void each_block_dot(const XBlock<R>& x, const std::byte* head, const std::byte* codes,
                           int64_t b, const Add& add) {
  const Ints w[8] = {quad_codes<F, 0>(codes), quad_codes<F, 1>(codes), quad_codes<F, 2>(codes),
                     quad_codes<F, 3>(codes), quad_codes<F, 4>(codes), quad_codes<F, 5>(codes),
                     quad_codes<F, 6>(codes), quad_codes<F, 7>(codes)};
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    const auto quads = [&](Ints dot, int first, int last) {
#pragma GCC unroll 8
      for (int j = first; j < last; j++) dot = add_dot(dot, w[j], broadcast_quad(x.quad(r, j)));
      return dot;
    };
    if constexpr (F == DType::q6_k) {
      const int high = x.minus_high_sum(r), low = x.minus_sum(r) - high;
      add(r, quads(zero_point<F>(low), 0, 4) * half_factor(head, b, 0) +
                 quads(zero_point<F>(high), 4, 8) * half_factor(head, b, 1));
    } else {
      add(r, quads(zero_point<F>(x.minus_sum(r)), 0, 8));
    }
  }
}
