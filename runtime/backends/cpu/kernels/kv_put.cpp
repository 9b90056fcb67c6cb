// Many keys or values at a time into their runs.
#include <algorithm>
#include <cstring>

#include "runtime/backends/cpu/kernels/kv_layout.hpp"

namespace hydrant::cpu {
namespace {

// Words of `count` rows into the lanes of a panel: to[w][lane + i] = from[i][w].
template <class Word>
void put_panel(const std::byte* rows, int64_t words, int64_t count, std::byte* panel,
               int64_t lane) {
  const auto* from = reinterpret_cast<const Word*>(rows);
  auto* to = reinterpret_cast<Word*>(panel) + lane;
  for (int64_t w = 0; w < words; w++, to += kRunSlots)
    for (int64_t i = 0; i < count; i++) to[i] = from[i * words + w];
}

// bf16 values of two neighbouring slots lie side by side.
void put_value_pairs(const uint16_t* from, int64_t dim, int64_t count, std::byte* values,
                     int64_t lane) {
  const auto half = [&](int64_t at, const uint16_t* row) {
    auto* to = reinterpret_cast<uint16_t*>(values) + at / 2 * dim * 2 + at % 2;
    for (int64_t e = 0; e < dim; e++) to[2 * e] = row[e];
  };
  int64_t i = 0;
  if (lane % 2 == 1) half(lane, from), i = 1;
  for (; i + 1 < count; i += 2) {
    const uint16_t *even = from + i * dim, *odd = even + dim;
    auto* to = reinterpret_cast<uint32_t*>(values) + (lane + i) / 2 * dim;
    for (int64_t e = 0; e < dim; e++) to[e] = even[e] | uint32_t{odd[e]} << 16;
  }
  if (i < count) half(lane + i, from + i * dim);
}

// put(run, lane, count, rows) for the part of the rows that each run gets.
template <class Put>
void each_run(const KvLayout& layout, std::byte* head, int64_t first, int64_t count,
              const std::byte* rows, const Put& put) {
  const size_t row_bytes = size_t(layout.head_dim) * layout.element_bytes();
  while (count > 0) {
    const int64_t lane = first % kRunSlots, part = std::min(count, kRunSlots - lane);
    put(head + size_t(first / kRunSlots) * layout.run_bytes(), lane, part, rows);
    first += part, count -= part, rows += size_t(part) * row_bytes;
  }
}

}  // namespace

void put_keys(const KvLayout& layout, std::byte* head, int64_t first, int64_t count,
              const std::byte* keys) {
  each_run(layout, head, first, count, keys,
           [&](std::byte* run, int64_t lane, int64_t part, const std::byte* rows) {
             if (layout.dtype == DType::f16)
               put_panel<uint16_t>(rows, layout.head_dim, part, run, lane);
             else  // one f32 or a pair of bf16
               put_panel<uint32_t>(rows, layout.head_dim * int64_t(layout.element_bytes()) / 4,
                                   part, run, lane);
           });
}

void put_values(const KvLayout& layout, std::byte* head, int64_t first, int64_t count,
                const std::byte* values) {
  const size_t row_bytes = size_t(layout.head_dim) * layout.element_bytes();
  each_run(layout, head, first, count, values,
           [&](std::byte* run, int64_t lane, int64_t part, const std::byte* rows) {
             std::byte* const to = run + layout.values_offset();
             if (layout.dtype == DType::bf16)
               put_value_pairs(reinterpret_cast<const uint16_t*>(rows), layout.head_dim, part, to,
                               lane);
             else
               std::memcpy(to + size_t(lane) * row_bytes, rows, size_t(part) * row_bytes);
           });
}

}  // namespace hydrant::cpu
