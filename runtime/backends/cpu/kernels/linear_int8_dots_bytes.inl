// Block dots where only pairs of bytes can be multiplied, into 16 bits that must not overflow.
// Quads outside, rows inside: each quad of weights is prepared once.

// Larger codes would overflow: the starts of the packed rows, meant for a zero at 128, are divided.
template <DType F>
constexpr int kUp = 0;

// dot += quad j, in 16 bits: eight of 2 * 15 * 127 (q4) fit, two of 2 * 63 * 127 (q6) do.
template <DType F, int j, int R>
[[gnu::always_inline]] inline void add_quad_16(const XBlock<R>& x, const std::byte* codes,
                                               Ints (&dot)[R]) {
  const Ints w = quad_codes<F, j>(codes);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++)
    dot[r] = add_16(dot[r], multiply_bytes(w, broadcast_quad(x.quad(r, j))));
}

// q8_0 undoes the + 128: |code| <= 128 times x with the code's sign is 2 * 128 * 127 at most.
template <int j, int R>
[[gnu::always_inline]] inline void add_signed_quad(const XBlock<R>& x, const std::byte* codes,
                                                   Ints (&dot)[R]) {
  const Ints w = load_ints(codes + j * 64) ^ broadcast_int(int(0x80808080));
  const Ints size = abs_bytes(w);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++)
    dot[r] = dot[r] +
             add_neighbours_16(multiply_bytes(size, with_sign_of(broadcast_quad(x.quad(r, j)), w)));
}

template <int R>
[[gnu::always_inline]] inline void clear(Ints (&dot)[R]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) dot[r] = broadcast_int(0);
}

template <int half, int R>
[[gnu::always_inline]] inline void half_block_dots(const XBlock<R>& x, const std::byte* codes,
                                                   Ints (&dot)[R]) {  // q6_k
  Ints first[R], second[R];
  clear(first);
  clear(second);
  add_quad_16<DType::q6_k, half * 4>(x, codes, first);
  add_quad_16<DType::q6_k, half * 4 + 1>(x, codes, first);
  add_quad_16<DType::q6_k, half * 4 + 2>(x, codes, second);
  add_quad_16<DType::q6_k, half * 4 + 3>(x, codes, second);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    const int high = x.high_start(r), start = half == 0 ? x.start(r) - high : high;
    dot[r] = broadcast_int(start / 4) + add_neighbours_16(first[r]) + add_neighbours_16(second[r]);
  }
}

template <DType F, int R, class Add>
[[gnu::always_inline]] inline void each_block_dot(const XBlock<R>& x, const std::byte* head,
                                                  const std::byte* codes, int64_t b,
                                                  const Add& add) {
  if constexpr (F == DType::q6_k) {
    Ints low[R], high[R];
    half_block_dots<0>(x, codes, low);
    half_block_dots<1>(x, codes, high);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
      add(r, low[r] * half_factor(head, b, 0) + high[r] * half_factor(head, b, 1));
    return;
  }
  Ints dot[R];
  clear(dot);
  const auto each_quad = [&]<int... j>(std::integer_sequence<int, j...>) {
    if constexpr (F == DType::q8_0)
      (add_signed_quad<j>(x, codes, dot), ...);
    else
      (add_quad_16<F, j>(x, codes, dot), ...);
  };
  each_quad(std::integer_sequence<int, 0, 4, 1, 5, 2, 6, 3, 7>{});  // the halves of a line together
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    if constexpr (F == DType::q8_0)
      add(r, dot[r]);
    else if constexpr (F == DType::q4_0)
      add(r, broadcast_int(x.start(r) / 16) + add_neighbours_16(dot[r]));
    else
      add(r, add_neighbours_16(dot[r]));
  }
}
