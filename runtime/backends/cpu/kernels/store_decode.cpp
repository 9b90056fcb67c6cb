#include "runtime/backends/cpu/kernels/fork.hpp"
#include "runtime/backends/cpu/kernels/kv_layout.hpp"
#include "runtime/backends/cpu/kernels/store.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

// One KV head of one row, before and after the step.
struct Head {
  KvLayout layout;
  const std::byte* from;
  std::byte* to;
  const float* from_score;
  float* to_score;
  const int32_t* from_position;
  int32_t* to_position;

  Head(const StoreDecodeArgs& args, int32_t place, int32_t kv_head)
      : layout{args.to.dtype, args.to.head_dim},
        from(first_run(args.from, place, kv_head)),
        to(first_run(args.to, place, kv_head)),
        from_score(args.from.scores_of(place, kv_head)),
        to_score(args.to.scores_of(place, kv_head)),
        from_position(args.from.positions_of(place, kv_head)),
        to_position(args.to.positions_of(place, kv_head)) {}

  // A token with all that belongs to it. Staying where it is costs nothing.
  void move(int32_t from_row, int32_t to_row) const {
    if (from_row != to_row || from != to) copy_slot(layout, from, from_row, to, to_row);
    to_score[to_row] = from_score[from_row];
    to_position[to_row] = from_position[from_row];
  }

 private:
  static std::byte* first_run(const CacheView& view, int32_t place, int32_t kv_head) {
    const KvRuns runs = view.row(place);
    return runs.data + size_t(kv_head) * runs.head_bytes;
  }
};

void store_head(const Head& head, const policy::SlotLayout& slots, int32_t position,
                int32_t victim) {
  const int32_t landing = slots.landing_of(position);
  if (!slots.evicts_at(position)) return head.move(landing, landing);
  const int32_t leaving = slots.leaving_of(position);
  ensure(0 <= victim && victim <= landing, "an evicting step at position {} has victim {} of {}",
         position, victim, landing);
  if (victim != leaving) head.move(leaving, victim);
  if (landing != leaving) head.move(landing, leaving);  // else recent = 0: it was the leaving one
}

}  // namespace

void store_decode(ThreadPool& pool, const StoreDecodeArgs& args) {
  const int32_t kv_heads = args.to.kv_heads;
  const auto store_one = [&](const Segment& segment, int32_t kv_head) {
    store_head(Head(args, segment.place, kv_head), args.to.plans[segment.place].slots,
               segment.first, args.from.victim[args.from.head_index(segment.place, kv_head)]);
  };
  // Nearly every element of a key is in a cache line of its own: two moves take as long as vector
  // work on ten times their elements.
  const int64_t items = int64_t(args.segments.size()) * kv_heads;
  split_large(pool, items, items * 10 * args.to.head_dim, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++)
      store_one(args.segments[size_t(i / kv_heads)], int32_t(i % kv_heads));
  });
}

}  // namespace hydrant::cpu
