// x as the kernels read it: tiles of a few rows, interleaved so that all rows of one step lie
// together. A row is rounded by itself. Steps of k outside, rows inside: a tile is written front to
// back.

// out[i][row] = in[row][i] for 16 words of four rows; `in` and `out` advance by rows of their own
// sizes.
inline void interleave_four(const void* in, int64_t in_words, int shape, void* out) {
  const auto* from = static_cast<const float*>(in);
  auto* to = static_cast<float*>(out);
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4, to += 4 * shape) {
    const __m128 a = _mm_loadu_ps(from + i), b = _mm_loadu_ps(from + in_words + i);
    const __m128 c = _mm_loadu_ps(from + 2 * in_words + i);
    const __m128 d = _mm_loadu_ps(from + 3 * in_words + i);
    const __m128 ab = _mm_unpacklo_ps(a, b), cd = _mm_unpacklo_ps(c, d);
    const __m128 ab2 = _mm_unpackhi_ps(a, b), cd2 = _mm_unpackhi_ps(c, d);
    _mm_storeu_ps(to, _mm_movelh_ps(ab, cd));
    _mm_storeu_ps(to + shape, _mm_movehl_ps(cd, ab));
    _mm_storeu_ps(to + 2 * shape, _mm_movelh_ps(ab2, cd2));
    _mm_storeu_ps(to + 3 * shape, _mm_movehl_ps(cd2, ab2));
  }
}

// out[i][row] = in[row][i] for `count` of up to 16 neighbours in all rows
template <class Element>
inline void interleave(const Element* in, int64_t in_stride, int count, int rows, int shape,
                       Element* out) {
  int r = 0;
  if constexpr (sizeof(Element) == sizeof(float))
    for (; count == 16 && r + 4 <= rows; r += 4)
      interleave_four(in + r * in_stride, in_stride, shape, out + r);
  for (; r < rows; r++)
    for (int i = 0; i < count; i++) out[i * shape + r] = in[r * in_stride + i];
}

// f32: [k][shape], an even number of k. What lies beyond k is zero.
inline void pack_f32(const float* x, int64_t stride, int64_t k, int rows, int shape,
                     std::byte* tile) {
  auto* out = reinterpret_cast<float*>(tile);
  if (rows < shape || k % 2 != 0) memset(out, 0, size_t(k + k % 2) * size_t(shape) * sizeof(float));
  if (shape == 1) {
    memcpy(out, x, size_t(k) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < k; i += 16, out += 16 * shape)
    interleave(x + i, stride, int(k - i < 16 ? k - i : 16), rows, shape, out);
}

// bf16: Pair [k / 2][shape]
inline void pack_bf16(const float* x, int64_t stride, int64_t k, int rows, int shape,
                      std::byte* tile) {
  auto* out = reinterpret_cast<Pair*>(tile);
  if (rows < shape) memset(out, 0, size_t((k + 1) / 2) * size_t(shape) * sizeof(Pair));
  for (int64_t i = 0; i < k; i += 32, out += 16 * shape) {
    const int left = int(k - i < 32 ? k - i : 32), upper = left - 16;
    Pair pairs[kMostTileRows][16];
    for (int r = 0; r < rows; r++) {
      const float* in = x + r * stride + i;
      store_pairs(pairs[r], upper >= 0 ? load(in) : load_first(in, left));
      if (upper > 0) store_pairs(pairs[r] + 8, load_first(in + 16, upper));
    }
    interleave(pairs[0], 16, (left + 1) / 2, rows, shape, out);
  }
}

// Sums of the 16 codes at p and of the 16 behind them.
inline void sum_codes(const std::byte* p, int* first, int* second) {
  const auto* v = reinterpret_cast<const __m128i*>(p);
  const __m128i none = _mm_setzero_si128(), flip = _mm_set1_epi8(char(0x80));
  const __m128i a = _mm_sad_epu8(_mm_xor_si128(_mm_loadu_si128(v), flip), none);
  const __m128i b = _mm_sad_epu8(_mm_xor_si128(_mm_loadu_si128(v + 1), flip), none);
  const __m128i both = _mm_add_epi64(_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
  *first = _mm_cvtsi128_si32(both) - 16 * 128;
  *second = _mm_extract_epi32(both, 2) - 16 * 128;
}

// int8: per 32 of k an XBlock: codes [shape][32], scale f32 [shape], start i32 [shape], high_start
// i32 [shape], scale * sum of codes f32 [shape].
inline void pack_int8_block(const float* x, int row, int shape, std::byte* block) {
  const Ints a = load_ints(x), b = load_ints(x + 16), sign_off = broadcast_int(0x7fffffff);
  // As integers the sizes of floats have the same order, and NaN is the largest: no NaN is lost.
  const uint32_t most_bits = reduce_max_unsigned(max_unsigned(a & sign_off, b & sign_off));
  const bool finite = most_bits < 0x7f800000;
  const float most = finite ? std::bit_cast<float>(most_bits) : 0.0f;
  // below 1e-30 the inverse could overflow, and nothing can be lost
  const Lanes inverse = broadcast(most > 1e-30f ? 127.0f / most : 0.0f);
  store_i8(block + row * 32, as_lanes(a) * inverse);
  store_i8(block + row * 32 + 16, as_lanes(b) * inverse);
  int low = 0, high = 0;
  sum_codes(block + row * 32, &low, &high);
  const float scale = finite ? most * (1.0f / 127) : NAN;  // goes on into every output of the row
  const int start = -128 * (low + high), high_start = -128 * high;
  const float scaled = scale * float(low + high);
  std::byte* fields = block + shape * 32 + row * 4;
  memcpy(fields, &scale, 4);
  memcpy(fields + shape * 4, &start, 4);
  memcpy(fields + shape * 8, &high_start, 4);
  memcpy(fields + shape * 12, &scaled, 4);
}
inline void pack_int8(const float* x, int64_t stride, int64_t k, int rows, int shape,
                      std::byte* tile) {
  const size_t block_bytes = size_t(shape) * 48;
  if (rows < shape) memset(tile, 0, size_t(k / kBlock) * block_bytes);
  for (int64_t b = 0; b < k / kBlock; b++, tile += block_bytes)
    for (int r = 0; r < rows; r++) pack_int8_block(x + r * stride + b * kBlock, r, shape, tile);
}
