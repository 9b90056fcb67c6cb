#include "offload/weight_layout.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/base/aligned.hpp"
#include "runtime/device/buffer.hpp"

namespace hydrant {
namespace {

size_t take(Arena& arena, const MatrixPlace& m, int64_t panels) {
  const size_t at = arena.used();
  arena.take_bytes(size_t(panels) * m.plan->weight.panel_bytes);
  return at;
}

// A little rest makes no request of its own.
constexpr int64_t kReadBytes = int64_t{5} << 18;

// What a run's rows are of their file. A shape has none.
struct Stretch {
  int64_t bytes = 0;
  size_t file = 0;
  uint64_t begin = 0;
  bool apart = false;  // its rows are not side by side
  int64_t requests = 1;

  uint64_t end() const { return begin + uint64_t(bytes); }
};
Stretch stretch_of(const PanelRun& run) {
  const MatrixPlan& m = *run.matrix;
  const int64_t row = row_bytes(m.weight.format, m.weight.k);
  Stretch s{.bytes = run.rows() * row};
  if (!m.tensor) return s;
  const RowOrder& order = m.source.order;
  const int64_t block = order.middle * order.inner, first = run.first * kPanelRows,
                last = first + run.rows() - 1;
  s.file = m.tensor->file;
  s.begin = m.tensor->offset + uint64_t((order.offset + first) * row);
  // Whole blocks of rows, each of which keeps its place whatever the order within it.
  s.apart = order.outer_step != block || first % block != 0 || (last + 1) % block != 0;
  if (order.outer_step != block) s.requests = last / block - first / block + 1;
  return s;
}

bool follows(const Stretch& a, const Stretch& b) {
  return !a.apart && !b.apart && a.file == b.file && b.begin >= a.end() &&
         b.begin - a.end() <= PanelReader::kBridge;
}

// In the order of the file.
std::vector<DiskRead> reads_of(std::vector<DiskRun> runs) {
  std::vector<std::pair<Stretch, DiskRun>> sorted;
  sorted.reserve(runs.size());
  for (const DiskRun& d : runs) sorted.emplace_back(stretch_of(d.run), d);
  const auto before = [](const auto& a, const auto& b) {
    return std::pair(a.first.file, a.first.begin) < std::pair(b.first.file, b.first.begin);
  };
  if (!std::is_sorted(sorted.begin(), sorted.end(), before))
    std::stable_sort(sorted.begin(), sorted.end(), before);
  std::vector<DiskRead> reads;
  for (size_t i = 0; i < sorted.size(); i++) {
    const auto& [stretch, run] = sorted[i];
    const bool shape = !run.run.matrix->tensor;
    if (i == 0 || reads.back().file_bytes + stretch.bytes > kReadBytes ||
        !(shape || follows(sorted[i - 1].first, stretch)))
      reads.emplace_back();
    reads.back().runs.push_back(run);
    reads.back().requests = std::max(reads.back().requests, stretch.requests);
    reads.back().bytes += run.run.bytes();
    reads.back().file_bytes += stretch.bytes;
  }
  return reads;
}

// Places of the stage's matrices in slot and host home.
void lay_out_stage(StageLayout& stage, Arena& host, WeightLayout::Reads reads) {
  stage.host_at = host.used();
  Arena slot;
  std::vector<DiskRun> runs;
  for (MatrixPlace& m : stage.matrices) {
    const size_t panel_bytes = m.plan->weight.panel_bytes;
    m.slot_at = take(slot, m, m.streamed());
    m.host_at = stage.host_at + m.slot_at;
    if (m.homes.host > 0) stage.host_bytes = m.slot_at + size_t(m.homes.host) * panel_bytes;
    stage.disk_bytes += size_t(m.homes.disk) * panel_bytes;
    if (m.homes.disk == 0 || reads == WeightLayout::Reads::left_out) continue;
    const int64_t first = m.homes.device + m.homes.host;
    for (const PanelRun& run : cut({m.plan, first, m.homes.disk})) {
      const auto before = size_t(run.first - m.homes.device);
      runs.push_back({run, m.slot_at + before * panel_bytes});
    }
  }
  stage.disk = reads_of(std::move(runs));
  stage.slot_bytes = slot.used();
  host.take_bytes(stage.host_bytes);
}

// A stage that takes at most this part of a slot passes in that of the stage before it.
constexpr size_t kSmall = 8;

// Who passes in whose slot; returns the size of a slot.
size_t share_slots(std::vector<StageLayout>& stages) {
  size_t largest = 0, with_small = 0;
  int owner = -1;
  for (size_t i = 0; i < stages.size(); i++) {
    StageLayout& stage = stages[i];
    stage.slot_of = int(i);
    if (stage.slot_bytes == 0) continue;
    const size_t own = owner < 0 ? 0 : stages[size_t(owner)].slot_bytes;
    if (with_small - own + stage.slot_bytes <= own / kSmall) {
      stage.slot_of = owner;
      stage.slot_at = with_small;
    } else {
      owner = int(i);
      with_small = 0;
    }
    with_small += stage.slot_bytes;
    largest = std::max(largest, with_small);
  }
  return largest;
}

}  // namespace

Weight MatrixPlace::weight(int64_t first, int64_t count, const std::byte* panels) const {
  Weight w = plan->weight;
  w.n = std::min(plan->weight.n - first * kPanelRows, count * kPanelRows);
  w.panels = panels;
  return w;
}

WeightLayout::WeightLayout(const WeightPlan& plan, const ModelSpec& spec, const Shares& shares,
                           Reads reads)
    : stages(size_t(spec.stages())) {
  const std::vector<MatrixSize> sizes = matrix_sizes(plan, spec);
  const std::vector<PanelHomes> homes = place_weights(sizes, shares);
  Arena device, host;
  std::map<std::pair<int, Vector>, size_t> placed;  // a vector may have several sources
  for (const VectorPlan& v : plan.vectors) {
    const auto [at, fresh] =
        placed.emplace(std::pair(v.source.stage, v.source.role), device.used());
    if (fresh) device.take_bytes(size_t(v.source.vector_size) * sizeof(float));
    vector_at.push_back(at->second);
  }
  for (size_t i = 0; i < homes.size(); i++) {
    const MatrixPlan& m = plan.matrices[i];
    MatrixPlace place{.plan = &m, .role = m.source.role, .homes = homes[i]};
    place.device_at = take(device, place, place.homes.device);
    if (sizes[i].only_looked_up) {
      place.host_at = take(host, place, place.homes.host);
      tables.push_back(place);
    } else {
      if (place.role == Matrix::tokens) place.role = Matrix::head;
      stages[size_t(sizes[i].stage)].matrices.push_back(place);
    }
  }
  const size_t own = stages.size() - (spec.tied_head ? 1 : 0);
  if (spec.tied_head) lay_out_stage(stages.back(), host, reads);  // looked up in as well
  looked_up_bytes = host.used();
  for (size_t i = 0; i < own; i++) lay_out_stage(stages[i], host, reads);
  for (const StageLayout& stage : stages)
    for (const DiskRead& read : stage.disk) largest_read = std::max(largest_read, read.bytes);
  slot_bytes = share_slots(stages);
  if (spec.tied_head)
    for (const MatrixPlace& m : stages.back().matrices)
      if (m.role == Matrix::head) {
        tables.push_back(m);
        tables.back().role = Matrix::tokens;
      }
  device_bytes = device.used();
  host_bytes = host.used();
}

std::vector<PanelLoad> WeightLayout::loads(std::byte* device, const HostHome& host) const {
  std::vector<PanelLoad> loads;
  std::set<const MatrixPlan*> listed;  // a tied table is in two places
  const auto add = [&](const MatrixPlace& m) {
    if (!listed.insert(m.plan).second) return;
    if (m.homes.device > 0)
      loads.push_back({{m.plan, 0, m.homes.device}, device + m.device_at, Memory::device});
    if (m.homes.host > 0)
      loads.push_back({{m.plan, m.homes.device, m.homes.host}, host.at(m.host_at), Memory::pinned});
  };
  for (const MatrixPlace& m : tables) add(m);
  for (const StageLayout& stage : stages)
    for (const MatrixPlace& m : stage.matrices) add(m);
  return loads;
}

const MatrixPlace* WeightLayout::table(Matrix role) const {
  for (const MatrixPlace& m : tables)
    if (m.role == role) return &m;
  return nullptr;
}

}  // namespace hydrant
