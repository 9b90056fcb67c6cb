// Products of f32, f16 and bf16 weights: rows x panels of accumulators that stay in registers. P
// panels are read as P streams from huge pages, which the hardware prefetches better than
// instructions in these loops would.

// One step of the format F: bytes of a panel and how many elements of k they hold.
template <DType F>
constexpr int64_t kStepBytes = F == DType::f16 ? 32 : 64;

template <DType F, int R, int P>
[[gnu::always_inline]] inline void add_products(const float* x, const std::byte* w,
                                                size_t panel_bytes, int64_t k, Lanes (&acc)[R][P]) {
  for (int64_t i = 0; i < k; i++, x += R, w += kStepBytes<F>) {
    Lanes wv[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) wv[p] = load_as<F>(w + size_t(p) * panel_bytes);
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) {
      const Lanes xv = broadcast(x[r]);
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) acc[r][p] = fma(wv[p], xv, acc[r][p]);
    }
  }
}

// bf16 weights with f32 activations; x has an even number of elements
template <int R, int P>
[[gnu::always_inline]] inline void add_bf16_products(const float* x, const std::byte* w,
                                                     size_t panel_bytes, int64_t pairs,
                                                     Lanes (&acc)[R][P]) {
  for (int64_t i = 0; i < pairs; i++, x += 2 * R, w += 64) {
    Lanes even[P], odd[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) {
      const Ints both = load_ints(w + size_t(p) * panel_bytes);
      even[p] = as_lanes(shift_left<16>(both));
      odd[p] = as_lanes(both & broadcast_int(int(0xffff0000)));
    }
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) {
      const Lanes x0 = broadcast(x[r]), x1 = broadcast(x[R + r]);
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) acc[r][p] = fma(odd[p], x1, fma(even[p], x0, acc[r][p]));
    }
  }
}

// bf16 weights with bf16 activations. While tall tiles are computed memory waits: the hardware
// looks ahead too little for them.
template <int R, int P>
[[gnu::always_inline]] inline void add_pair_products(const Pair* x, const std::byte* w,
                                                     size_t panel_bytes, int64_t pairs,
                                                     Lanes (&acc)[R][P]) {
  for (int64_t i = 0; i < pairs; i++, x += R, w += 64) {
    Pairs wv[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) {
      const std::byte* const at = w + size_t(p) * panel_bytes;
      wv[p] = load_pairs(at);
      if constexpr (R >= 8) _mm_prefetch(reinterpret_cast<const char*>(at + 2048), _MM_HINT_T0);
    }
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) {
      const auto xv = broadcast(x[r]);
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) acc[r][p] = dot(acc[r][p], wv[p], xv);
    }
  }
}

template <DType F, Activations A, int R, int P>
[[gnu::always_inline]] inline void multiply_panels(const std::byte* tile, const std::byte* panels,
                                                   size_t panel_bytes, int64_t k, float* sums) {
  Lanes acc[R][P];
#pragma GCC unroll 32
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) acc[r][p] = zero();
  if constexpr (A == Activations::bf16)
    add_pair_products(reinterpret_cast<const Pair*>(tile), panels, panel_bytes, (k + 1) / 2, acc);
  else if constexpr (F == DType::bf16)
    add_bf16_products(reinterpret_cast<const float*>(tile), panels, panel_bytes, (k + 1) / 2, acc);
  else if constexpr (is_quantised(F))
    add_block_products<F>(reinterpret_cast<const float*>(tile), panels, panel_bytes, k / kBlock,
                          acc);
  else
    add_products<F>(reinterpret_cast<const float*>(tile), panels, panel_bytes, k, acc);
#pragma GCC unroll 8
  for (int p = 0; p < P; p++)
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) store(sums + (p * R + r) * 16, acc[r][p]);
}

template <DType F, Activations A, int R>
void multiply_tile(const std::byte* tile, const std::byte* panels, size_t panel_bytes, int count,
                   int64_t k, float* sums) {
  constexpr int P = panels_at_once(R, is_quantised(F));
  int p = 0;
  for (; p + P <= count; p += P, panels += P * panel_bytes, sums += P * R * 16)
    multiply_panels<F, A, R, P>(tile, panels, panel_bytes, k, sums);
  for (; p < count; p++, panels += panel_bytes, sums += R * 16)
    multiply_panels<F, A, R, 1>(tile, panels, panel_bytes, k, sums);
}
