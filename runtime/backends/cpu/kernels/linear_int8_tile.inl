// Quantised weights with int8 activations. A block's dot is exact in integers, so only the chain
// over blocks rounds: acc = fma(dot, scale * dx, acc), then fma(minimum, dx * sum of x, acc).

// While tall tiles are computed memory waits: the hardware looks ahead too little, and not at all
// where x takes the first cache for itself. Short tiles read faster without instructions for it.
constexpr size_t kAhead = 4096;

template <DType F, int R>
[[gnu::always_inline]] inline void add_int8_products(const std::byte* x, const std::byte* panel,
                                                     int64_t blocks, Lanes (&acc)[R]) {
  constexpr BlockLayout layout = block_layout(F);
  constexpr int up = kUp<F>;
  for (int64_t b = 0; b < blocks; b++, x += XBlock<R>::kBytes) {
    const std::byte *head = panel + layout.head(b), *codes = panel + layout.codes(b);
    const XBlock<R> rows{x};
    if constexpr (R >= 8)
#pragma GCC unroll 16
      for (size_t i = 0; i < layout.code_bytes; i += 64)
        _mm_prefetch(reinterpret_cast<const char*>(codes + kAhead + i), _MM_HINT_T0);
    Lanes scale = block_scale<F>(head, b), minimum = zero();
    if constexpr (up != 0) scale = scale * broadcast(1.0f / (1 << up));
    if constexpr (kHasMinimum<F>) minimum = block_minimum<F>(head, b);
    const auto add = [&](int r, Ints dot) {
      acc[r] = fma(to_lanes(dot), scale * broadcast(rows.scale(r)), acc[r]);
      if constexpr (kHasMinimum<F>) acc[r] = fma(minimum, broadcast(rows.scaled_sum(r)), acc[r]);
    };
    each_block_dot<F>(rows, head, codes, b, add);
  }
}

template <DType F, int R>
void multiply_int8_tile(const std::byte* tile, const std::byte* panels, size_t panel_bytes,
                        int count, int64_t k, float* sums) {
  for (int p = 0; p < count; p++, panels += panel_bytes, sums += R * 16) {
    Lanes acc[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) acc[r] = zero();
    add_int8_products<F>(tile, panels, k / kBlock, acc);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) store(sums + r * 16, acc[r]);
  }
}
