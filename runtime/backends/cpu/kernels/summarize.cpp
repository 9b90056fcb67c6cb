#include <algorithm>

#include "runtime/backends/cpu/kernels/attend.hpp"
#include "runtime/backends/cpu/kernels/prompt_work.hpp"
#include "runtime/base/aligned.hpp"

namespace hydrant::cpu {
namespace {

PromptWork carve(Arena& arena, const HeadShape& shape, size_t blocks, int threads) {
  return take_prompt_work(arena, shape, blocks, kRegisterRows, threads);
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
  const PromptWork work =
      carve_from(scratch, [&](Arena& arena) { return carve(arena, shape, blocks, pool.size()); });
  int64_t count = 0;  // early keys are seen by most queries: the longest work first
  for (int32_t s = 0; s < int32_t(args.segments.size()); s++)
    if (const PromptSegment& p = args.segments[size_t(s)]; p.sum)
      for (int32_t block = 0; block < ceil_div(keys(p), kAttendBlock); block++)
        for (int32_t h = 0; h < shape.kv_heads; h++) work.items[count++] = {s, h, block};

  const AttendKernels& kernels = attend_kernels(isa);
  pool.each(count, [&](int64_t i, int member) {
    const PromptItem& item = work.items[i];
    const PromptSegment& p = args.segments[size_t(item.segment)];
    ColumnBlock block;
    block.layout = {args.dtype, shape.head_dim};
    block.begin = item.part * kAttendBlock;
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
    kernels.column_block(block, work.tiles[member]);
  });
}

size_t summarize_prompt_bytes(const HeadShape& shape, int32_t segments, int32_t length,
                              int threads) {
  const size_t blocks = size_t(segments) * size_t(ceil_div(length, kAttendBlock));
  return bytes_of([&](Arena& arena) { return carve(arena, shape, blocks, threads); });
}

}  // namespace hydrant::cpu
