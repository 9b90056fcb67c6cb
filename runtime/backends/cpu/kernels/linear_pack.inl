// x as the kernels read it: tiles of a few rows, interleaved so that all rows of one step lie
// together. A row is rounded by itself.

// f32: [k][rows], an even number of k. What lies beyond k is zero.
inline void pack_f32(const float* x, int64_t k, int rows, int shape, std::byte* tile) {
  auto* out = reinterpret_cast<float*>(tile);
  if (rows < shape || k % 2 != 0) memset(out, 0, size_t(k + k % 2) * size_t(shape) * sizeof(float));
  if (shape == 1) {
    memcpy(out, x, size_t(k) * sizeof(float));
    return;
  }
  for (int r = 0; r < rows; r++, x += k)
    for (int64_t i = 0; i < k; i++) out[i * shape + r] = x[i];
}

// bf16: Pair [k / 2][rows]
inline void pack_bf16(const float* x, int64_t k, int rows, int shape, std::byte* tile) {
  auto* out = reinterpret_cast<Pair*>(tile);
  const int64_t pairs = (k + 1) / 2;
  if (rows < shape) memset(out, 0, size_t(pairs) * size_t(shape) * sizeof(Pair));
  for (int r = 0; r < rows; r++, x += k)
    for (int64_t i = 0; i < k; i += 32) {
      const int left = int(k - i < 32 ? k - i : 32), upper = left - 16;
      Pair pair[16];
      store_pairs(pair, upper >= 0 ? load(x + i) : load_first(x + i, left));
      if (upper > 0) store_pairs(pair + 8, load_first(x + i + 16, upper));
      for (int j = 0; j < (left + 1) / 2; j++) out[(i / 2 + j) * shape + r] = pair[j];
    }
}

// int8: per 32 of k the codes [rows][32], then scale f32 [rows], minus the sum of the codes i32
// [rows], minus the sum of the last 16 i32 [rows], scale * sum f32 [rows].
inline void pack_int8_block(const float* x, int row, int shape, std::byte* block) {
  const Lanes a = load(x), b = load(x + 16), size = max(abs(a), abs(b));
  const bool finite = bits(less(abs(a), broadcast(INFINITY))) == 0xffff &&
                      bits(less(abs(b), broadcast(INFINITY))) == 0xffff;
  const float most = finite ? reduce_max(size) : NAN;
  // below 1e-30 the inverse would overflow, and nothing can be lost
  const Lanes inverse = broadcast(most > 1e-30f ? 127.0f / most : 0.0f);
  const Lanes qa = finite ? round(a * inverse) : zero(), qb = finite ? round(b * inverse) : zero();
  store_i8(block + row * 32, qa);
  store_i8(block + row * 32 + 16, qb);
  const float scale = most / 127.0f;  // NaN goes on into every output of the row
  const float high = reduce_add(qb), sum = reduce_add(qa) + high;  // whole numbers: exact
  const int minus_sum = -int(sum), minus_high = -int(high);
  const float scaled = scale * sum;
  std::byte* fields = block + shape * 32 + row * 4;
  memcpy(fields, &scale, 4);
  memcpy(fields + shape * 4, &minus_sum, 4);
  memcpy(fields + shape * 8, &minus_high, 4);
  memcpy(fields + shape * 12, &scaled, 4);
}
inline void pack_int8(const float* x, int64_t k, int rows, int shape, std::byte* tile) {
  const size_t block_bytes = size_t(shape) * 48;
  if (rows < shape) memset(tile, 0, size_t(k / kBlock) * block_bytes);
  for (int r = 0; r < rows; r++, x += k)
    for (int64_t b = 0; b < k / kBlock; b++)
      pack_int8_block(x + b * kBlock, r, shape, tile + size_t(b) * block_bytes);
}
