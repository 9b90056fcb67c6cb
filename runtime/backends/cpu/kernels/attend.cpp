#include "runtime/backends/cpu/kernels/attend.hpp"

#include <algorithm>
#include <atomic>
#include <span>

#include "runtime/backends/cpu/kernels/attend_ranks.hpp"
#include "runtime/backends/cpu/kernels/attend_scratch.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

// A part of the slots of one (segment, KV head), in that order; `start` counts slots from the first
// item on, which is how the work is shared out.
struct Item {
  int64_t start;
  int32_t segment, kv_head, part, slots;
};

struct Workspace {
  Item* items;
  float* sums;          // [item][group][sums_stride]
  int32_t* unfinished;  // [segment][kv_head] parts to come
  int32_t* ranks;       // [segment][kv_head][slots]
  std::byte* words;     // [thread][word_bytes] for rank_positions
  size_t word_bytes;
  TileScratch* tiles;  // [thread]
};

Workspace carve(Arena& arena, const HeadShape& shape, int32_t rows, int32_t slots,
                int32_t last_position, int threads) {
  const size_t heads = size_t(rows) * size_t(shape.kv_heads);
  const size_t items = heads * size_t(ceil_div(slots, kAttendBlock));
  const bool rotated = last_position >= 0;
  Workspace w;
  w.items = take<Item>(arena, items);
  w.sums = take<float>(arena,
                       items * size_t(shape.heads / shape.kv_heads) * sums_stride(shape.head_dim));
  w.unfinished = take<int32_t>(arena, heads);
  w.ranks = take<int32_t>(arena, rotated ? heads * size_t(slots) : 0);
  w.word_bytes = rotated ? align_up(rank_workspace_bytes(last_position), size_t{64}) : 0;
  w.words = take<std::byte>(arena, size_t(threads) * w.word_bytes);
  w.tiles = take_tiles(arena, threads, shape.head_dim, kRegisterRows, rotated);
  return w;
}

class DecodeStep {
 public:
  DecodeStep(ThreadPool& pool, Isa isa, const AttendDecodeArgs& args, AttendScratch& scratch)
      : pool_(pool),
        kernels_(attend_kernels(isa)),
        args_(args),
        layout_{args.cache.dtype, args.shape.head_dim},
        group_(args.shape.heads / args.shape.kv_heads) {
    int32_t last_position = -1;
    for (const Segment& s : args.segments)
      if (rotated(s)) last_position = std::max(last_position, s.first);
    workspace_ = carve_from(scratch, [&](Arena& arena) {
      return carve(arena, args.shape, int32_t(args.segments.size()), args.cache.slots,
                   last_position, pool.size());
    });
    list_items();
    if (last_position >= 0) rank();
  }

  void run() {
    const int64_t slots = items_.empty() ? 0 : items_.back().start + items_.back().slots;
    pool_.run([&](int member) {
      const size_t begin = first_from(slots * member / pool_.size());
      const size_t end = first_from(slots * (member + 1) / pool_.size());
      for (size_t i = begin; i < end; i++) {
        kernels_.decode_part(part(i), workspace_.tiles[member]);
        finish(items_[i]);
      }
    });
  }

 private:
  const Segment& segment(const Item& item) const { return args_.segments[size_t(item.segment)]; }
  const policy::RowPlan& plan(const Segment& s) const { return args_.cache.plans[s.place]; }
  int32_t live(const Segment& s) const { return plan(s).slots.live_rows(s.first); }
  bool rotated(const Segment& s) const {
    return plan(s).positions == policy::Positions::cache && args_.ranks.dims > 0;
  }
  size_t head_index(const Item& item) const {
    return size_t(item.segment) * size_t(args_.shape.kv_heads) + size_t(item.kv_head);
  }
  // The first query head of the item among all of the step.
  size_t query_head(const Item& item) const {
    return size_t(segment(item).token) * size_t(args_.shape.heads) +
           size_t(item.kv_head) * size_t(group_);
  }
  float* sums(size_t index) const {
    return workspace_.sums + index * size_t(group_) * sums_stride(layout_.head_dim);
  }
  const std::byte* runs(const Item& item) const {
    const KvRuns row = args_.cache.row(segment(item).place);
    return row.data + size_t(item.kv_head) * row.head_bytes +
           size_t(item.part) * (kAttendBlock / kRunSlots) * row.run_bytes;
  }
  size_t first_from(int64_t slot) const {
    const auto before = [&](const Item& item) { return item.start < slot; };
    return size_t(std::partition_point(items_.begin(), items_.end(), before) - items_.begin());
  }

  void list_items() {
    size_t count = 0;
    int64_t start = 0;
    for (int32_t s = 0; s < int32_t(args_.segments.size()); s++) {
      const int32_t slots = live(args_.segments[size_t(s)]);
      ensure(slots > 0 && slots <= args_.cache.slots, "a row has {} live slots of {}", slots,
             args_.cache.slots);
      for (int32_t h = 0; h < args_.shape.kv_heads; h++)
        for (int32_t from = 0; from < slots; from += kAttendBlock) {
          const Item item{start, s, h, from / kAttendBlock, std::min(slots - from, kAttendBlock)};
          workspace_.items[count++] = item;
          workspace_.unfinished[head_index(item)] = item.part + 1;
          start += item.slots;
        }
    }
    items_ = {workspace_.items, count};
  }

  void rank() {
    const int32_t heads = args_.shape.kv_heads;
    for (const Segment& s : args_.segments)
      ensure(!rotated(s) || live(s) <= args_.ranks.table.shape[0],
             "a row of {} live slots asks for more than the {} rotations there are", live(s),
             args_.ranks.table.shape[0]);
    pool_.each(int64_t(args_.segments.size()) * heads, [&](int64_t i, int member) {
      const Segment& s = args_.segments[size_t(i / heads)];
      if (rotated(s))
        rank_positions(args_.cache.positions_of(s.place, int32_t(i % heads)), live(s), s.first,
                       workspace_.words + size_t(member) * workspace_.word_bytes,
                       workspace_.ranks + size_t(i) * size_t(args_.cache.slots));
    });
  }

  DecodePart part(size_t index) const {
    const Item& item = items_[index];
    const Segment& s = segment(item);
    DecodePart p;
    p.layout = layout_;
    p.runs = runs(item);
    p.slots = item.slots;
    p.group = group_;
    p.q = args_.q.as<float>() + query_head(item) * size_t(layout_.head_dim);
    p.scale = args_.scale;
    const size_t first_slot = size_t(item.part) * kAttendBlock;
    if (rotated(s))
      p.rotation = {workspace_.ranks + head_index(item) * size_t(args_.cache.slots) + first_slot,
                    args_.ranks.table.as<float>(), args_.ranks.dims, live(s) - 1};
    if (args_.logits.data && plan(s).scored) {
      p.logits_stride = size_t(args_.cache.slots);
      p.logits = args_.logits.as<float>() + query_head(item) * p.logits_stride + first_slot;
    }
    p.sums = sums(index);
    return p;
  }

  // Whoever ends the last part of a KV head puts all of them together, in slot order.
  void finish(const Item& item) const {
    const int32_t parts = ceil_div(live(segment(item)), kAttendBlock);
    std::atomic_ref<int32_t> unfinished(workspace_.unfinished[head_index(item)]);
    if (parts > 1 && unfinished.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const size_t first_part = size_t(&item - items_.data()) - size_t(item.part);
    float* const out = args_.out.as<float>() + query_head(item) * size_t(layout_.head_dim);
    float* const lse = args_.lse.data ? args_.lse.as<float>() + query_head(item) : nullptr;
    kernels_.decode_merge({layout_.head_dim, group_, parts, sums(first_part), out, lse});
  }

  ThreadPool& pool_;
  const AttendKernels& kernels_;
  const AttendDecodeArgs& args_;
  const KvLayout layout_;
  const int32_t group_;
  Workspace workspace_{};
  std::span<const Item> items_;
};

}  // namespace

void attend_decode(ThreadPool& pool, Isa isa, const AttendDecodeArgs& args,
                   AttendScratch& scratch) {
  if (!args.segments.empty()) DecodeStep(pool, isa, args, scratch).run();
}

size_t attend_decode_bytes(const HeadShape& shape, int32_t rows, int32_t slots,
                           int32_t last_position, int threads) {
  return bytes_of(
      [&](Arena& arena) { return carve(arena, shape, rows, slots, last_position, threads); });
}

}  // namespace hydrant::cpu
