#include <algorithm>

#include "runtime/backends/cpu/kernels/attend.hpp"
#include "runtime/backends/cpu/kernels/prompt_work.hpp"
#include "runtime/base/aligned.hpp"

namespace hydrant::cpu {
namespace {

// Enough rows (query, head) to use a block of keys often while it is in L1 and L2, few enough for
// short chunks to occupy all threads.
constexpr int32_t kTileRows = 96;

int32_t tile_queries(const HeadShape& shape) {
  return std::max(1, kTileRows / (shape.heads / shape.kv_heads));
}

PromptWork carve(Arena& arena, const HeadShape& shape, size_t tiles, int threads) {
  const int32_t rows = tile_queries(shape) * (shape.heads / shape.kv_heads);
  return take_prompt_work(arena, shape, tiles, rows, threads);
}

}  // namespace

void attend_prompt(ThreadPool& pool, Isa isa, const AttendPromptArgs& args,
                   AttendScratch& scratch) {
  const HeadShape& shape = args.shape;
  const int32_t step = tile_queries(shape);
  size_t tiles = 0;
  for (const PromptSegment& p : args.segments) tiles += size_t(ceil_div(p.segment.count, step));
  const PromptWork work =
      carve_from(scratch, [&](Arena& arena) { return carve(arena, shape, tiles, pool.size()); });
  int64_t count = 0;  // the longest of a prompt first, so that nobody waits long for the last
  for (int32_t s = 0; s < int32_t(args.segments.size()); s++)
    for (int32_t tile = ceil_div(args.segments[size_t(s)].segment.count, step) - 1; tile >= 0;
         tile--)
      for (int32_t h = 0; h < shape.kv_heads; h++) work.items[count++] = {s, h, tile};

  const AttendKernels& kernels = attend_kernels(isa);
  pool.each(count, [&](int64_t i, int member) {
    const PromptItem& item = work.items[i];
    const PromptSegment& p = args.segments[size_t(item.segment)];
    PromptTile tile;
    tile.layout = {args.dtype, shape.head_dim};
    tile.runs = p.kv.data + size_t(item.kv_head) * p.kv.head_bytes;
    const int32_t query = item.part * step;  // the first of the tile in its chunk
    tile.first = p.segment.first + query;
    tile.queries = std::min(step, p.segment.count - query);
    tile.group = shape.heads / shape.kv_heads;
    tile.query_stride = size_t(shape.heads) * size_t(shape.head_dim);
    tile.lse_stride = size_t(shape.heads);
    tile.scale = args.scale;
    const size_t token = size_t(p.segment.token) + size_t(query);
    const size_t head = size_t(item.kv_head) * size_t(tile.group);
    tile.q = args.q.as<float>() + token * tile.query_stride + head * size_t(shape.head_dim);
    tile.out = args.out.as<float>() + token * tile.query_stride + head * size_t(shape.head_dim);
    tile.lse = args.lse.as<float>() + token * tile.lse_stride + head;
    kernels.prompt_tile(tile, work.tiles[member]);
  });
}

size_t attend_prompt_bytes(const HeadShape& shape, int32_t segments, int32_t tokens, int threads) {
  const size_t tiles = size_t(tokens / tile_queries(shape)) + size_t(segments);
  return bytes_of([&](Arena& arena) { return carve(arena, shape, tiles, threads); });
}

}  // namespace hydrant::cpu
