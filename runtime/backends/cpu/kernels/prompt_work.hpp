// Attention over a prompt and the column sums of its keys share out their work alike.
#pragma once
#include "runtime/backends/cpu/kernels/attend_scratch.hpp"

namespace hydrant::cpu {

struct PromptItem {
  int32_t segment, kv_head, part;  // a part is a tile of queries, or a block of keys
};
struct PromptWork {
  PromptItem* items;   // [part][kv_head]
  TileScratch* tiles;  // [thread]
};

inline PromptWork take_prompt_work(Arena& arena, const HeadShape& shape, size_t parts, int32_t rows,
                                   int threads) {
  PromptWork w;
  w.items = take<PromptItem>(arena, parts * size_t(shape.kv_heads));
  w.tiles = take_tiles(arena, threads, shape.head_dim, rows, false);
  return w;
}

}  // namespace hydrant::cpu
