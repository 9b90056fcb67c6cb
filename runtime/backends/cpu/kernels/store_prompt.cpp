#include <algorithm>
#include <cstring>

#include "runtime/backends/cpu/kernels/kv_layout.hpp"
#include "runtime/backends/cpu/kernels/store.hpp"
#include "runtime/backends/cpu/kernels/store_select.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

const std::byte* first_run(const KvRuns& runs, int32_t kv_head) {
  return runs.data + size_t(kv_head) * runs.head_bytes;
}

// The prompt's tokens that stay are its slots: whole runs are copied, and what lies there already
// is not.
void copy_run(const KvLayout& layout, const std::byte* keys, const std::byte* values, std::byte* to,
              int32_t run) {
  const size_t at = size_t(run) * layout.run_bytes(), half = layout.values_offset();
  if (keys != to) std::memcpy(to + at, keys + at, half);
  if (values != to) std::memcpy(to + at + half, values + at + half, half);
}

void gather_slots(const KvLayout& layout, const std::byte* keys, const std::byte* values,
                  std::byte* to, const int32_t* position, int32_t begin, int32_t end) {
  for (int32_t slot = begin; slot < end; slot++) {
    copy_key(layout, keys, position[slot], to, slot);
    copy_value(layout, values, position[slot], to, slot);
  }
}

}  // namespace

void store_prompt(ThreadPool& pool, const StorePromptArgs& args) {
  const PromptSegment& prompt = args.prompt;
  const int32_t place = prompt.segment.place, kv_heads = args.to.kv_heads;
  const policy::RowPlan& plan = args.to.plans[place];
  const KvRuns home = args.to.row(place), raw = prompt.raw.data ? prompt.raw : prompt.kv;
  const KvLayout layout{args.to.dtype, args.to.head_dim};
  const int32_t stored = std::min(prompt.length, plan.slots.capacity());
  const bool fits = prompt.length == stored;
  ensure(fits || (prompt.kv.data != home.data && raw.data != home.data),
         "a prompt of {} tokens lies in a home of {} slots", prompt.length, stored);
  ensure(!plan.scored || (prompt.sum && prompt.last), "a scored row comes without column sums");

  pool.split(kv_heads, [&](int64_t begin, int64_t end, int) {
    for (int64_t head = begin; head < end; head++) {
      const int64_t column = head * prompt.stats_stride;
      select_prompt(plan, prompt.length, plan.scored ? prompt.sum + column : nullptr,
                    plan.scored ? prompt.last + column : nullptr,
                    args.to.positions_of(place, int32_t(head)),
                    args.to.scores_of(place, int32_t(head)));
    }
  });
  if (fits && prompt.kv.data == home.data && raw.data == home.data) return;

  const int32_t runs = ceil_div(stored, kRunSlots);
  pool.each(int64_t{kv_heads} * runs, [&](int64_t item, int) {
    const int32_t head = int32_t(item / runs), run = int32_t(item % runs);
    const std::byte *const keys = first_run(raw, head), *const values = first_run(prompt.kv, head);
    std::byte* const to = home.data + size_t(head) * home.head_bytes;
    if (fits) return copy_run(layout, keys, values, to, run);
    const int32_t begin = run * kRunSlots;
    gather_slots(layout, keys, values, to, args.to.positions_of(place, head), begin,
                 std::min(begin + kRunSlots, stored));
  });
}

}  // namespace hydrant::cpu
