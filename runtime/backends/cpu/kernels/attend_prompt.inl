// A prompt's causal attention, tile by tile, and its column sums, block of keys by block of keys.
namespace {

// Rows of a tile are (query, head of the group), heads fastest.
struct PromptRows {
  int32_t first, group;
  int32_t position(int32_t row) const { return first + row / group; }
};

// The next R rows against the block of keys that begins at slot `begin`.
template <DType type, int R>
void prompt_rows(const PromptTile& tile, int32_t row, int32_t begin, const TileScratch& scratch) {
  const int32_t d = tile.layout.head_dim;
  const size_t run_bytes = tile.layout.run_bytes();
  const PromptRows rows{tile.first, tile.group};
  const std::byte* const runs = tile.runs + size_t(begin / kRunSlots) * run_bytes;
  int32_t slots[R];
  for (int r = 0; r < R; r++) {
    const int32_t seen = rows.position(row + r) + 1 - begin;
    slots[r] = seen < 0 ? 0 : seen > kAttendBlock ? kAttendBlock : seen;
  }
  if (slots[R - 1] == 0) return;
  const auto* const left = static_cast<const Left<type>*>(scratch.left);
  score<type, R>(left + row * (d / Side<type>::together), d, {runs, run_bytes},
                 (slots[R - 1] + 15) / 16, scratch.logits);
  auto* const weights = static_cast<Left<type>*>(scratch.weights);
  for (int r = 0; r < R; r++)
    weigh<type>(scratch.logits + r * kAttendBlock, slots[r],
                {scratch.most + row + r, scratch.total + (row + r) * 16,
                 scratch.out + (row + r) * padded(d), d},
                weights + r * (kAttendBlock / Side<type>::together));
  mix<type, R>(weights, {runs + tile.layout.values_offset(), run_bytes}, d, slots,
               scratch.out + row * padded(d));
}

// The tile's queries [row / group ...] packed as the products want them.
template <DType type>
void pack_queries(const float* q, size_t query_stride, int32_t group, int32_t head_dim, float scale,
                  int32_t row, int32_t count, void* to) {
  auto* left = static_cast<Left<type>*>(to);
  for (int32_t i = row; i < row + count; i++, left += head_dim / Side<type>::together)
    pack_left<type>(q + size_t(i / group) * query_stride + size_t(i % group) * size_t(head_dim),
                    head_dim, scale, left);
}

template <DType type>
void prompt_tile_of(const PromptTile& tile, const TileScratch& scratch) {
  const int32_t d = tile.layout.head_dim, rows = tile.queries * tile.group;
  pack_queries<type>(tile.q, tile.query_stride, tile.group, d, tile.scale, 0, rows, scratch.left);
  memset(scratch.out, 0, size_t(rows) * size_t(padded(d)) * sizeof(float));
  memset(scratch.total, 0, size_t(rows) * 16 * sizeof(float));
  for (int32_t r = 0; r < rows; r++) scratch.most[r] = kLowest;
  for (int32_t begin = 0; begin < tile.first + tile.queries; begin += kAttendBlock)
    for_each_tile<kPromptRows>(
        0, rows, [&]<int R>(int32_t row) { prompt_rows<type, R>(tile, row, begin, scratch); });
  for (int32_t r = 0; r < rows; r++) {
    const size_t query = size_t(r / tile.group), head = size_t(r % tile.group);
    tile.lse[query * tile.lse_stride + head] = finish_row(
        scratch.out + r * padded(d), d, scratch.most[r], reduce_add(load(scratch.total + r * 16)),
        tile.out + query * tile.query_stride + head * size_t(d));
  }
}

void prompt_tile(const PromptTile& tile, const TileScratch& scratch) {
  if (tile.layout.dtype == DType::f32) return prompt_tile_of<DType::f32>(tile, scratch);
  if (tile.layout.dtype == DType::f16) return prompt_tile_of<DType::f16>(tile, scratch);
  prompt_tile_of<DType::bf16>(tile, scratch);
}

// Adds what R rows give to the block's keys, row by row.
template <DType type, int R>
void add_columns(const ColumnBlock& block, int32_t row, const TileScratch& scratch) {
  const int32_t d = block.layout.head_dim;
  const PromptRows rows{block.first, block.group};
  const int32_t seen = rows.position(row + R - 1) + 1 - block.begin;
  const int32_t keys = seen < block.keys ? seen : block.keys;
  if (keys <= 0) return;
  pack_queries<type>(block.q, block.query_stride, block.group, d, block.scale, row, R,
                     scratch.left);
  score<type, R>(static_cast<const Left<type>*>(scratch.left), d,
                 {block.runs, block.layout.run_bytes()}, (keys + 15) / 16, scratch.logits);
  for (int32_t i = 0; i < keys; i += 16) {
    const int32_t count = keys - i < 16 ? keys - i : 16;
    Lanes sum = load_first(block.sum + i, count);
    Lanes last = block.last ? load_first(block.last + i, count) : zero();
    for (int r = 0; r < R; r++) {
      const int32_t query = (row + r) / block.group, head = (row + r) % block.group;
      const float lse = block.lse[size_t(query) * block.lse_stride + size_t(head)];
      const int32_t alive = block.first + query + 1 - block.begin - i;
      Lanes mass = exp_of_loss(load(scratch.logits + r * kAttendBlock + i) - broadcast(lse));
      if (alive < 16) mass = select(first(alive < 0 ? 0 : alive), mass, zero());
      sum = sum + mass;
      if (query == block.queries - 1) last = last + mass;
    }
    store_first(block.sum + i, sum, count);
    if (block.last) store_first(block.last + i, last, count);
  }
}

template <DType type>
void column_block_of(const ColumnBlock& block, const TileScratch& scratch) {
  if (block.last) memset(block.last, 0, size_t(block.keys) * sizeof(float));
  const int32_t rows = block.queries * block.group;
  // rows of queries before the block's first key see none of it
  const int32_t blind = block.begin > block.first ? (block.begin - block.first) * block.group : 0;
  for_each_tile<kPromptRows>(
      blind, rows, [&]<int R>(int32_t row) { add_columns<type, R>(block, row, scratch); });
}

void column_block(const ColumnBlock& block, const TileScratch& scratch) {
  if (block.layout.dtype == DType::f32) return column_block_of<DType::f32>(block, scratch);
  if (block.layout.dtype == DType::f16) return column_block_of<DType::f16>(block, scratch);
  column_block_of<DType::bf16>(block, scratch);
}

}  // namespace
