#include "offload/disk_rows.hpp"

#include <algorithm>

namespace hydrant {
namespace {

// A slot: indices into the small table, or -1; then its panels.
constexpr size_t kIndexBytes = size_t(DiskRows::kRows) * sizeof(int32_t);
constexpr int64_t kPanels = DiskRows::kRows / kPanelRows;

template <class Bytes>
size_t most(const WeightLayout& layout, const Bytes& bytes) {
  size_t largest = 0;
  for (const MatrixPlace& table : layout.tables)
    if (table.homes.disk > 0) largest = std::max(largest, bytes(table));
  return largest;
}

// The same rows of the arguments alone.
EmbedArgs part(EmbedArgs args, int64_t begin, int64_t count) {
  args.indices = {args.indices.as<int32_t>() + begin, DType::i32, {count}};
  const int64_t width = args.out.shape[1];
  args.out = {args.out.as<float>() + begin * width, DType::f32, {count, width}};
  return args;
}

}  // namespace

DiskRows::DiskRows(const Checkpoint& checkpoint, Device& device, const WeightLayout& layout,
                   bool own_lane, std::byte* memory, WeightTraffic& traffic,
                   const std::atomic<bool>& stopping)
    : ops_(device.ops()),
      traffic_(traffic),
      stopping_(stopping),
      slots_(device, memory, kSlots, slot_bytes(layout)),
      file_(checkpoint, device.ops()) {
  if (slot_bytes(layout) == 0) return;
  file_.reserve(reader_bytes(layout));
  rows_.reserve(size_t(kRows));
  if (own_lane) lane_ = device.make_stream("look_up", /*inline_work=*/false);
}

size_t DiskRows::slot_bytes(const WeightLayout& layout) {
  return most(layout, [](const MatrixPlace& table) {
    return kIndexBytes + size_t(kPanels) * table.plan->weight.panel_bytes;
  });
}

// Rows far from each other take the most: a row may touch a block more than it fills on each side,
// and the row between two neighbours may come along.
size_t DiskRows::reader_bytes(const WeightLayout& layout) {
  return most(layout, [](const MatrixPlace& table) {
    const Weight& w = table.plan->weight;
    return size_t(kRows) * (2 * size_t(row_bytes(w.format, w.k)) + 2 * File::kBlock);
  });
}

void DiskRows::look_up(const MatrixPlace& table, const EmbedArgs& args, Stream& reader) {
  Stream& lane = lane_ ? *lane_ : reader;
  const size_t bytes = kIndexBytes + size_t(kPanels) * table.plan->weight.panel_bytes;
  const int64_t tokens = args.indices.shape[0];
  for (int64_t begin = 0; begin < tokens; begin += kRows) {
    EmbedArgs some = part(args, begin, std::min(kRows, tokens - begin));
    const Wanted wanted = list(table, some);
    if (wanted.here == 0) continue;
    const int64_t use = use_++;
    std::byte* const slot = slots_.data(use);
    slots_.begin_fill(use, lane);
    lane.fill(slot, bytes, [this, &table, wanted, slot] { read(table, wanted, slot); });
    slots_.end_fill(use, lane);
    slots_.begin_read(use, reader);
    some.indices.data = slot;
    some.offset = 0;
    some.table = table.plan->weight;
    some.table.panels = slot + kIndexBytes;
    some.table.n = kRows;
    some.partial = true;
    ops_.embed(reader, some);
    slots_.end_read(use, reader);
  }
}

DiskRows::Wanted DiskRows::list(const MatrixPlace& table, const EmbedArgs& args) {
  const int64_t first = (table.homes.device + table.homes.host) * kPanelRows;
  Wanted wanted{};
  wanted.count = size_t(args.indices.shape[0]);
  for (size_t i = 0; i < wanted.count; i++) {
    const int64_t row = int64_t{args.indices.as<int32_t>()[i]} + args.offset;
    const bool here = row >= first && row < table.plan->weight.n;
    wanted.rows[i] = here ? int32_t(row) : -1;
    wanted.here += here;
  }
  return wanted;
}

void DiskRows::read(const MatrixPlace& table, const Wanted& wanted, std::byte* slot) {
  if (stopping_) return;
  auto* const indices = reinterpret_cast<int32_t*>(slot);
  rows_.clear();
  for (size_t i = 0; i < wanted.count; i++) {
    indices[i] = wanted.rows[i] < 0 ? -1 : int32_t(rows_.size());
    if (wanted.rows[i] >= 0) rows_.push_back(wanted.rows[i]);
  }
  file_.read(*table.plan, rows_, slot + kIndexBytes);
  traffic_.rows += rows_.size();
}

}  // namespace hydrant
