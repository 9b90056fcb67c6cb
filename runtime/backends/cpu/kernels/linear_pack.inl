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

// The largest size among a block's elements, as bits, in four parts: as integers the sizes of
// floats have the same order, and NaN is the largest, so no NaN is lost.
inline __m128i most_bits(Ints a, Ints b) {
  const Ints sign_off = broadcast_int(0x7fffffff);
  return fold_max_unsigned(max_unsigned(a & sign_off, b & sign_off));
}

// A block's 32 codes -> parts of the sums of the first and of the second half, in turns, each code
// plus 128.
inline __m128i sums_of_codes(const std::byte* codes) {
  const auto* v = reinterpret_cast<const __m128i*>(codes);
  const __m128i none = _mm_setzero_si128(), flip = _mm_set1_epi8(char(0x80));
  const __m128i first = _mm_sad_epu8(_mm_xor_si128(_mm_loadu_si128(v), flip), none);
  const __m128i second = _mm_sad_epu8(_mm_xor_si128(_mm_loadu_si128(v + 1), flip), none);
  return _mm_or_si128(first, _mm_slli_epi64(second, 32));
}

// Stores the first `count` of four.
template <int count>
inline void store_some(std::byte* p, __m128i v) {
  if constexpr (count == 4)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
  else
    memcpy(p, &v, count * 4);
}

// int8: per 32 of k an XBlock: codes [shape][32], scale f32 [shape], start i32 [shape], high_start
// i32 [shape], scale * sum of codes f32 [shape]. N rows, at most four, of one block from `row` on:
// what a row needs one number of is done for all of them at once.
template <int N>
inline void pack_int8_block(const float* x, int64_t stride, int row, int shape, std::byte* block) {
  Ints a[N], b[N];
  __m128i most4[4] = {}, sum2[4] = {};
#pragma GCC unroll 4
  for (int r = 0; r < N; r++) {
    a[r] = load_ints(x + r * stride);
    b[r] = load_ints(x + r * stride + 16);
    most4[r] = most_bits(a[r], b[r]);
  }
  const __m128i most_01 =
      _mm_max_epu32(_mm_unpacklo_epi32(most4[0], most4[1]), _mm_unpackhi_epi32(most4[0], most4[1]));
  const __m128i most_23 =
      _mm_max_epu32(_mm_unpacklo_epi32(most4[2], most4[3]), _mm_unpackhi_epi32(most4[2], most4[3]));
  const __m128i bits =
      _mm_max_epu32(_mm_unpacklo_epi64(most_01, most_23), _mm_unpackhi_epi64(most_01, most_23));
  const __m128 finite = _mm_castsi128_ps(_mm_cmplt_epi32(bits, _mm_set1_epi32(0x7f800000)));
  const __m128 most = _mm_and_ps(finite, _mm_castsi128_ps(bits));
  // below 1e-30 the inverse could overflow, and nothing can be lost
  alignas(16) float inverse[4];
  _mm_store_ps(inverse, _mm_and_ps(_mm_cmpgt_ps(most, _mm_set1_ps(1e-30f)),
                                   _mm_div_ps(_mm_set1_ps(127.0f), most)));
  std::byte* const codes = block + row * 32;
#pragma GCC unroll 4
  for (int r = 0; r < N; r++) {
    store_i8(codes + r * 32, as_lanes(a[r]) * broadcast(inverse[r]));
    store_i8(codes + r * 32 + 16, as_lanes(b[r]) * broadcast(inverse[r]));
    sum2[r] = sums_of_codes(codes + r * 32);
  }
  const __m128 sum_01 = _mm_castsi128_ps(
      _mm_add_epi32(_mm_unpacklo_epi64(sum2[0], sum2[1]), _mm_unpackhi_epi64(sum2[0], sum2[1])));
  const __m128 sum_23 = _mm_castsi128_ps(
      _mm_add_epi32(_mm_unpacklo_epi64(sum2[2], sum2[3]), _mm_unpackhi_epi64(sum2[2], sum2[3])));
  const __m128i shifted = _mm_set1_epi32(16 * 128);
  const __m128i low =
      _mm_sub_epi32(_mm_castps_si128(_mm_shuffle_ps(sum_01, sum_23, 0x88)), shifted);
  const __m128i high =
      _mm_sub_epi32(_mm_castps_si128(_mm_shuffle_ps(sum_01, sum_23, 0xdd)), shifted);
  const __m128i sum = _mm_add_epi32(low, high), none = _mm_setzero_si128();
  // what is not finite goes on into every output of the row
  const __m128 scale =
      _mm_or_ps(_mm_mul_ps(most, _mm_set1_ps(1.0f / 127)), _mm_andnot_ps(finite, _mm_set1_ps(NAN)));
  std::byte* const fields = block + shape * 32 + row * 4;
  store_some<N>(fields, _mm_castps_si128(scale));
  store_some<N>(fields + shape * 4, _mm_sub_epi32(none, _mm_slli_epi32(sum, 7)));
  store_some<N>(fields + shape * 8, _mm_sub_epi32(none, _mm_slli_epi32(high, 7)));
  store_some<N>(fields + shape * 12, _mm_castps_si128(_mm_mul_ps(scale, _mm_cvtepi32_ps(sum))));
}
inline void pack_int8(const float* x, int64_t stride, int64_t k, int rows, int shape,
                      std::byte* tile) {
  const size_t block_bytes = size_t(shape) * 48;
  if (rows < shape) memset(tile, 0, size_t(k / kBlock) * block_bytes);
  for (int64_t b = 0; b < k / kBlock; b++, tile += block_bytes, x += kBlock) {
    int r = 0;
    for (; r + 4 <= rows; r += 4) pack_int8_block<4>(x + r * stride, stride, r, shape, tile);
    for (; r < rows; r++) pack_int8_block<1>(x + r * stride, stride, r, shape, tile);
  }
}
