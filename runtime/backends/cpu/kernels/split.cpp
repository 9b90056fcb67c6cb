#include "runtime/backends/cpu/kernels/split.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/backends/cpu/kernels/fork.hpp"
#include "runtime/backends/cpu/kernels/kv_layout.hpp"

namespace hydrant::cpu {
namespace {

// One token's part of qkv: queries of all heads, keys of all kv heads, values of all kv heads.
struct TokenParts {
  const float *q, *k, *v;
};

struct Geometry {
  HeadShape shape;
  int64_t dim, width;  // of a head, of a token's qkv

  explicit Geometry(const HeadShape& s)
      : shape(s), dim(s.head_dim), width((int64_t{s.heads} + 2 * int64_t{s.kv_heads}) * dim) {}
  TokenParts parts(const ConstTensor& qkv, int64_t token) const {
    const float* q = qkv.as<float>() + token * width;
    const float* k = q + shape.heads * dim;
    return {q, k, k + shape.kv_heads * dim};
  }
  float* query(const Tensor& q, int64_t token) const {
    return q.as<float>() + token * shape.heads * dim;
  }
};

// Cosines and sines of a token; null: nothing is rotated.
const float* turns_of(const Rotary& rotary, int64_t token) {
  if (rotary.dims == 0 || !rotary.table) return nullptr;
  return rotary.table.as<float>() + token * rotary.dims;
}

void rotate_head(const float* in, const float* turns, int32_t dims, int64_t dim, float* out) {
  const int64_t half = dims / 2;
  for (int64_t j = 0; j < half; j++) {
    const float cosine = turns[2 * j], sine = turns[2 * j + 1], a = in[j], b = in[j + half];
    out[j] = a * cosine - b * sine;
    out[j + half] = b * cosine + a * sine;
  }
  std::copy(in + dims, in + dim, out + dims);
}

void rotate(const float* in, const float* turns, int32_t dims, int64_t dim, int32_t heads,
            float* out) {
  if (!turns) {
    std::copy(in, in + heads * dim, out);
    return;
  }
  for (int64_t h = 0; h < heads; h++) rotate_head(in + h * dim, turns, dims, dim, out + h * dim);
}

float* grown(std::vector<float>& scratch, int64_t floats) {
  if (scratch.size() < size_t(floats)) scratch.resize(size_t(floats));
  return scratch.data();
}

// The tokens of a segment whose slots share a run: no two blocks write the same memory.
struct Block {
  const PromptSegment* segment;
  int32_t slot, count, token;
};

int64_t blocks_of(const PromptSegment& s) {
  const int32_t end = s.segment.first + s.segment.count;
  return (end - 1) / kRunSlots - s.segment.first / kRunSlots + 1;
}

Block block_at(std::span<const PromptSegment> segments, int64_t index) {
  const PromptSegment* s = segments.data();
  for (int64_t blocks; index >= (blocks = blocks_of(*s)); s++) index -= blocks;
  const int32_t first = s->segment.first, end = first + s->segment.count;
  const int32_t run = (first / kRunSlots + int32_t(index)) * kRunSlots;
  const int32_t slot = std::max(first, run), last = std::min(end, run + kRunSlots);
  return {s, slot, last - slot, s->segment.token + slot - first};
}

void split_block(const SplitPromptArgs& args, const Geometry& g, const KvLayout& layout,
                 const Block& b, float* rotated) {
  const PromptSegment& s = *b.segment;
  for (int32_t i = 0; i < b.count; i++) {
    const int64_t token = b.token + i;
    rotate(g.parts(args.qkv, token).q, turns_of(args.rotary, token), args.rotary.dims, g.dim,
           g.shape.heads, g.query(args.q, token));
  }
  const TokenParts parts = g.parts(args.qkv, b.token);
  for (int64_t h = 0; h < g.shape.kv_heads; h++) {
    for (int32_t i = 0; i < b.count; i++)
      rotate(parts.k + i * g.width + h * g.dim, turns_of(args.rotary, b.token + i),
             args.rotary.dims, g.dim, 1, rotated + i * g.dim);
    std::byte* const head = s.kv.data + size_t(h) * s.kv.head_bytes;
    put_tokens(layout, head, b.slot, b.count, rotated, nullptr, g.dim);
    put_tokens(layout, head, b.slot, b.count, nullptr, parts.v + h * g.dim, g.width);
    if (s.raw.data)
      put_tokens(layout, s.raw.data + size_t(h) * s.raw.head_bytes, b.slot, b.count,
                 parts.k + h * g.dim, nullptr, g.width);
  }
}

}  // namespace

void split_decode(ThreadPool& pool, const SplitDecodeArgs& args, std::vector<float>& scratch) {
  const Geometry g(args.shape);
  const CacheView& cache = args.cache;
  const KvLayout layout{cache.dtype, cache.head_dim};
  const auto rows = int64_t(args.segments.size()), keys = g.shape.kv_heads * g.dim;
  float* const rotated = grown(scratch, rows * keys);
  split_large(pool, rows, rows * g.width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const Segment& s = args.segments[size_t(i)];
      const policy::RowPlan& plan = cache.plans[s.place];
      const bool by_rank = plan.positions == policy::Positions::cache;
      const float* turns = by_rank ? nullptr : turns_of(args.rotary, s.token);
      const TokenParts parts = g.parts(args.qkv, s.token);
      float* const k = rotated + i * keys;
      rotate(parts.q, turns, args.rotary.dims, g.dim, g.shape.heads, g.query(args.q, s.token));
      rotate(parts.k, turns, args.rotary.dims, g.dim, g.shape.kv_heads, k);
      const int32_t landing = plan.slots.landing_of(s.first);
      const KvRuns runs = cache.row(s.place);
      for (int32_t h = 0; h < g.shape.kv_heads; h++) {
        std::byte* const head = runs.data + size_t(h) * runs.head_bytes;
        put_tokens(layout, head, landing, 1, k + h * g.dim, parts.v + h * g.dim, g.dim);
        cache.positions_of(s.place, h)[landing] = s.first;
      }
    }
  });
}

void split_prompt(ThreadPool& pool, const SplitPromptArgs& args, std::vector<float>& scratch) {
  const Geometry g(args.shape);
  const KvLayout layout{args.dtype, args.shape.head_dim};
  int64_t blocks = 0;
  for (const PromptSegment& s : args.segments) blocks += blocks_of(s);
  const int64_t per_block = kRunSlots * g.dim;
  float* const rotated = grown(scratch, blocks * per_block);
  split_large(pool, blocks, args.qkv.shape.count(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      split_block(args, g, layout, block_at(args.segments, i), rotated + i * per_block);
  });
}

}  // namespace hydrant::cpu
