#include <algorithm>

#include "runtime/backends/cpu/kernels/attend.hpp"
#include "runtime/backends/cpu/kernels/attend_scratch.hpp"
#include "runtime/base/aligned.hpp"

namespace hydrant::cpu {
namespace {

struct Item {
  int32_t segment, kv_head, block;
};
struct Workspace {
  Item* items;
  TileScratch* tiles;
};

Workspace carve(Arena& arena, const HeadShape& shape, size_t blocks, int threads) {
  Workspace w;
  w.items = take<Item>(arena, blocks * size_t(shape.kv_heads));
  w.tiles = take_tiles(arena, threads, shape.head_dim, kRegisterRows, false);
  return w;
}

// Keys that the chunk's queries see.
int32_t keys(const PromptSegment& p) { return p.segment.first + p.segment.count; }

}  // namespace

void summarize_prompt(ThreadPool& pool, Isa isa, const SummarizePromptArgs& args,
                      AttendScratch& scratch) {
  const HeadShape& shape = args.shape;
  size_t blocks = 0;
  for (const PromptSegment& p : args.segments)
    if (p.sum) blocks += size_t(ceil_div(keys(p), kAttendBlock));
  const Workspace workspace =
      carve_from(scratch, [&](Arena& arena) { return carve(arena, shape, blocks, pool.size()); });
  int64_t count = 0;  // early keys are seen by most queries: the longest work first
  for (int32_t s = 0; s < int32_t(args.segments.size()); s++)
    if (const PromptSegment& p = args.segments[size_t(s)]; p.sum)
      for (int32_t block = 0; block < ceil_div(keys(p), kAttendBlock); block++)
        for (int32_t h = 0; h < shape.kv_heads; h++) workspace.items[count++] = {s, h, block};

  const AttendKernels& kernels = attend_kernels(isa);
  pool.each(count, [&](int64_t i, int member) {
    const Item& item = workspace.items[i];
    const PromptSegment& p = args.segments[size_t(item.segment)];
    ColumnBlock block;
    block.layout = {args.dtype, shape.head_dim};
    block.begin = item.block * kAttendBlock;
    block.keys = std::min(kAttendBlock, keys(p) - block.begin);
    block.runs = p.kv.data + size_t(item.kv_head) * p.kv.head_bytes +
                 size_t(block.begin / kRunSlots) * p.kv.run_bytes;
    block.first = p.segment.first;
    block.queries = p.segment.count;
    block.group = shape.heads / shape.kv_heads;
    block.query_stride = size_t(shape.heads) * size_t(shape.head_dim);
    block.lse_stride = size_t(shape.heads);
    block.scale = args.scale;
    const size_t token = size_t(p.segment.token);
    const size_t head = size_t(item.kv_head) * size_t(block.group);
    block.q = args.q.as<float>() + token * block.query_stride + head * size_t(shape.head_dim);
    block.lse = args.lse.as<float>() + token * block.lse_stride + head;
    const size_t stats = size_t(item.kv_head) * size_t(p.stats_stride) + size_t(block.begin);
    block.sum = p.sum + stats;
    if (p.last && keys(p) == p.length) block.last = p.last + stats;
    kernels.column_block(block, workspace.tiles[member]);
  });
}

size_t summarize_prompt_bytes(const HeadShape& shape, int32_t segments, int32_t length,
                              int threads) {
  const size_t blocks = size_t(segments) * size_t(ceil_div(length, kAttendBlock));
  return bytes_of([&](Arena& arena) { return carve(arena, shape, blocks, threads); });
}

}  // namespace hydrant::cpu
