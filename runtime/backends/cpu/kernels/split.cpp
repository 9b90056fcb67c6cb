#include "runtime/backends/cpu/kernels/split.hpp"

#include <algorithm>

#include "runtime/backends/cpu/kernels/elementwise_paths.hpp"
#include "runtime/backends/cpu/kernels/fork.hpp"
#include "runtime/backends/cpu/kernels/kv_layout.hpp"

namespace hydrant::cpu {
namespace {

// Tokens [token, token + count) of a step, at most one run of them, for slots slot, slot + 1, ...
// of that run.
struct Block {
  int64_t token;
  int32_t count, slot;
  bool rotated;
  KvRuns kv, raw;  // no raw keys: null data
};

// Takes blocks of tokens apart. One per member of the pool, each with its share of the scratch.
class Splitter {
 public:
  static int64_t scratch_floats(const HeadShape& shape, const Rotary& rotary) {
    return kRunSlots * (rotary.dims + 2 * int64_t{shape.head_dim});
  }
  Splitter(Isa isa, const HeadShape& shape, DType dtype, const ConstTensor& qkv,
           const Rotary& rotary, const Tensor& q, float* scratch)
      : encode_(elementwise_path(isa).encode),
        shape_(shape),
        layout_{dtype, shape.head_dim},
        dim_(shape.head_dim),
        width_((shape.heads + 2 * int64_t{shape.kv_heads}) * dim_),
        qkv_(qkv.as<float>()),
        q_(q.as<float>()),
        rotary_(rotary),
        turns_(scratch),
        rotated_(turns_ + kRunSlots * rotary.dims),
        encoded_(reinterpret_cast<std::byte*>(rotated_ + kRunSlots * dim_)) {}

  void split(const Block& b) const {
    const float *const queries = qkv_ + b.token * width_,
                       *const keys = queries + shape_.heads * dim_,
                       *const values = keys + shape_.kv_heads * dim_;
    const bool turns = b.rotated && rotary_.dims > 0 && rotary_.table;
    if (turns) load_turns(b);
    for (int32_t i = 0; i < b.count; i++)
      for (int64_t h = 0; h < shape_.heads; h++)
        put_head(queries + i * width_ + h * dim_, turns, i,
                 q_ + ((b.token + i) * shape_.heads + h) * dim_);
    for (int64_t h = 0; h < shape_.kv_heads; h++) {
      std::byte* const head = b.kv.data + size_t(h) * b.kv.head_bytes;
      for (int32_t i = 0; i < b.count; i++)
        put_head(keys + i * width_ + h * dim_, turns, i, rotated_ + i * dim_);
      encode_(layout_.dtype, rotated_, b.count * dim_, encoded_);
      put_keys(layout_, head, b.slot, b.count, encoded_);
      encode_rows(values + h * dim_, b.count);
      put_values(layout_, head, b.slot, b.count, encoded_);
      if (!b.raw.data) continue;
      encode_rows(keys + h * dim_, b.count);
      put_keys(layout_, b.raw.data + size_t(h) * b.raw.head_bytes, b.slot, b.count, encoded_);
    }
  }

 private:
  // A token's cosines, then its sines: vectors of each, where the table has pairs.
  void load_turns(const Block& b) const {
    const int64_t dims = rotary_.dims, half = dims / 2;
    for (int32_t i = 0; i < b.count; i++) {
      const float* pairs = rotary_.table.as<float>() + (b.token + i) * dims;
      float *cosine = turns_ + i * dims, *sine = cosine + half;
      for (int64_t j = 0; j < half; j++) cosine[j] = pairs[2 * j], sine[j] = pairs[2 * j + 1];
    }
  }
  void put_head(const float* in, bool turned, int32_t token, float* out) const {
    const int64_t dims = turned ? rotary_.dims : 0, half = dims / 2;
    const float *cosine = turns_ + token * dims, *sine = cosine + half;
    for (int64_t j = 0; j < half; j++) {
      const float a = in[j], b = in[j + half];
      out[j] = a * cosine[j] - b * sine[j];
      out[j + half] = b * cosine[j] + a * sine[j];
    }
    std::copy(in + dims, in + dim_, out + dims);
  }
  void encode_rows(const float* rows, int32_t count) const {
    const size_t bytes = size_t(dim_) * layout_.element_bytes();
    for (int32_t i = 0; i < count; i++)
      encode_(layout_.dtype, rows + i * width_, dim_, encoded_ + size_t(i) * bytes);
  }

  void (*encode_)(DType, const float*, int64_t, std::byte*);
  HeadShape shape_;
  KvLayout layout_;
  int64_t dim_, width_;  // of a head; of a token's qkv
  const float* qkv_;
  float* q_;
  Rotary rotary_;
  float *turns_, *rotated_;
  std::byte* encoded_;
};

float* grown(std::vector<float>& scratch, int64_t floats) {
  if (scratch.size() < size_t(floats)) scratch.resize(size_t(floats));
  return scratch.data();
}

// A segment is cut where runs end: no two blocks write the same memory.
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
  return {s->segment.token + slot - first, last - slot, slot, true, s->kv, s->raw};
}

}  // namespace

void split_decode(ThreadPool& pool, Isa isa, const SplitDecodeArgs& args,
                  std::vector<float>& scratch) {
  const CacheView& cache = args.cache;
  const int64_t share = Splitter::scratch_floats(args.shape, args.rotary);
  float* const memory = grown(scratch, share * pool.size());
  constexpr int64_t kCost = 4;  // single rows go into panels word by word
  split_large(pool, int64_t(args.segments.size()), args.qkv.shape.count() * kCost,
              [&](int64_t begin, int64_t end, int member) {
                const Splitter splitter(isa, args.shape, cache.dtype, args.qkv, args.rotary, args.q,
                                        memory + member * share);
                for (int64_t i = begin; i < end; i++) {
                  const Segment& s = args.segments[size_t(i)];
                  const policy::RowPlan& plan = cache.plans[s.place];
                  const int32_t landing = plan.slots.landing_of(s.first);
                  splitter.split({s.token,
                                  1,
                                  landing,
                                  plan.positions == policy::Positions::original,
                                  cache.row(s.place),
                                  {}});
                  for (int32_t h = 0; h < cache.kv_heads; h++)
                    cache.positions_of(s.place, h)[landing] = s.first;
                }
              });
}

void split_prompt(ThreadPool& pool, Isa isa, const SplitPromptArgs& args,
                  std::vector<float>& scratch) {
  int64_t blocks = 0;
  for (const PromptSegment& s : args.segments) blocks += blocks_of(s);
  const int64_t share = Splitter::scratch_floats(args.shape, args.rotary);
  float* const memory = grown(scratch, share * pool.size());
  split_large(pool, blocks, args.qkv.shape.count(), [&](int64_t begin, int64_t end, int member) {
    const Splitter splitter(isa, args.shape, args.dtype, args.qkv, args.rotary, args.q,
                            memory + member * share);
    for (int64_t i = begin; i < end; i++) splitter.split(block_at(args.segments, i));
  });
}

}  // namespace hydrant::cpu
