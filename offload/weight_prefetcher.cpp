#include "offload/weight_prefetcher.hpp"

#include <algorithm>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"
#include "runtime/device/copied_memory.hpp"
#include "runtime/device/traced.hpp"

namespace hydrant {
namespace {

constexpr int kMostSlots = 64, kMostLanes = 16;

WeightOffload checked(const WeightOffload& o) {
  if (o.slots < 2 || o.slots > kMostSlots)
    fail(Fault::bad_config, "prefetch.weight_slots: {}, must be 2 to {}", o.slots, kMostSlots);
  if (o.disk_lanes < 1 || o.disk_lanes > kMostLanes)
    fail(Fault::bad_config, "prefetch.disk_lanes: {}, must be 1 to {}", o.disk_lanes, kMostLanes);
  check_link(o.link);
  return o;
}

int slots_of(const WeightOffload& o) { return o.overlap ? o.slots : 1; }
int disk_lanes_of(const WeightOffload& o) { return o.overlap ? o.disk_lanes : 0; }

// Where the allocations are cut; sizes alone where an arena measures.
struct Carved {
  std::byte *device_home, *ring, *rows;
  HostHome host_home;
  DiskPanels::Memory reading;
  size_t arriving = 0;
};
// On the host: what is only copied from, and what kernels read.
struct Arenas {
  Arena device, host, in_place;
};
Carved carve(const WeightLayout& layout, const WeightOffload& o, size_t arriving, Arenas& arenas) {
  auto& [device, host, in_place] = arenas;
  const auto take = [](Arena& arena, size_t bytes) {
    return static_cast<std::byte*>(arena.take_bytes(bytes));
  };
  Carved c{};
  // The first: a large allocation begins on a border of a large page. Others may not even begin on
  // that of a block.
  const int lanes = disk_lanes_of(o);
  c.reading.turns = DiskPanels::turns(layout, lanes, arriving, o.arriving);
  c.arriving = arriving * size_t(std::max(1, lanes) * c.reading.turns);
  if (std::byte* const at = take(host, c.arriving > 0 ? c.arriving + File::kBlock : 0)) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    c.reading.arriving = at + (align_up(address, uintptr_t{File::kBlock}) - address);
  }
  c.reading.arriving_bytes = arriving;
  c.device_home = take(device, layout.device_bytes);
  c.ring = take(device, layout.slot_bytes * size_t(slots_of(o)));
  c.host_home = {take(in_place, layout.looked_up_bytes),
                 take(host, layout.host_bytes - layout.looked_up_bytes), layout.looked_up_bytes};
  c.reading.buffers = take(host, layout.largest_read * DiskPanels::buffers(lanes));
  c.rows = take(in_place, DiskRows::slot_bytes(layout) * size_t(DiskRows::kSlots));
  return c;
}

OffloadMemory measure(const WeightLayout& layout, const Checkpoint& file, const Ops& ops,
                      const WeightOffload& o) {
  Arenas all;
  const Carved c = carve(layout, o, DiskPanels::arriving_bytes(file, ops, layout), all);
  OffloadMemory memory{layout.device_bytes, all.device.used() - layout.device_bytes,
                       layout.host_bytes, all.host.used() + all.in_place.used() - layout.host_bytes,
                       c.arriving};
  memory.staging += DiskRows::reader_bytes(layout);
  return memory;
}

}  // namespace

OffloadMemory WeightPrefetcher::memory(const Checkpoint& checkpoint, const ModelSpec& spec,
                                       const WeightPlan& plan, const Ops& ops,
                                       const WeightOffload& options) {
  const WeightOffload o = checked(options);
  return measure(WeightLayout(plan, spec, o.shares), checkpoint.reopened(o.caching), ops, o);
}

OffloadMemory WeightPrefetcher::unstaged_memory(const WeightPlan& plan, const ModelSpec& spec,
                                                const WeightOffload& options) {
  const WeightLayout layout(plan, spec, options.shares, WeightLayout::Reads::left_out);
  Arenas all;
  carve(layout, checked(options), /*arriving=*/0, all);
  return {layout.device_bytes, all.device.used() - layout.device_bytes, layout.host_bytes, 0, 0};
}

WeightPrefetcher::WeightPrefetcher(const Checkpoint& checkpoint, const ModelSpec& spec,
                                   const WeightPlan& plan, Device& device,
                                   const WeightOffload& options, const LoadProgress& progress)
    : options_(checked(options)),
      file_(checkpoint.reopened(options.caching)),
      ops_(device.ops()),
      layout_(plan, spec, options.shares),
      memory_(measure(layout_, file_, ops_, options_)),
      on_device_(device.allocate(Memory::device, memory_.device_homes + memory_.ring,
                                 "the weights on the device")),
      link_(options.link) {
  Arenas size;
  const size_t arriving = DiskPanels::arriving_bytes(file_, ops_, layout_);
  carve(layout_, options_, arriving, size);
  on_host_ = allocate_for_copies(device, size.host.used(), "the weights on the host");
  read_in_place_ = device.allocate(Memory::pinned, size.in_place.used(),
                                   "rows that kernels look up on the host");
  Arenas memory{Arena(on_device_), Arena(on_host_), Arena(read_in_place_)};
  const Carved at = carve(layout_, options_, arriving, memory);
  device_home_ = at.device_home;
  host_home_ = at.host_home;

  Upload upload(device);
  for (size_t i = 0; i < plan.vectors.size(); i++)
    load_vector(checkpoint, plan.vectors[i], upload, device_home_ + layout_.vector_at[i]);
  load_panels(checkpoint, device, layout_.loads(device_home_, host_home_), progress);
  set_views(plan);
  const bool reads = layout_.largest_read > 0 || DiskRows::slot_bytes(layout_) > 0;
  ensure(!reads || !file_.files().empty(), "weights are to be read from disk, and are in no file");
  if (reads && options_.caching == Caching::direct && !file_.files().front().is_direct())
    log::warning("{}: its file system has no direct reads; weights come through the page cache",
                 file_.files().front().path());
  ring_.emplace(device, at.ring, slots_of(options_), layout_.slot_bytes);
  disk_panels_.emplace(file_, device, layout_, disk_lanes_of(options_), at.reading, traffic_,
                       stopping_);
  for (int stage = 0; stage < int(layout_.stages.size()); stage++)
    expected_.push_back(
        {layout(stage).host_bytes, layout(stage).disk_bytes, disk_panels_->moved(stage)});
  disk_rows_.emplace(file_, device, layout_, options_.overlap, at.rows, traffic_, stopping_);
  passengers_.resize(layout_.stages.size());
  for (int stage = 0; stage < int(layout_.stages.size()); stage++)
    if (moves(stage)) passengers_[size_t(layout(stage).slot_of)].push_back(stage);
  next_ = after(-1);
  if (options_.overlap && next_ >= 0)
    lane_ = device.make_stream("load_weights", /*inline_work=*/false);
}

WeightPrefetcher::~WeightPrefetcher() { stopping_ = true; }

void WeightPrefetcher::set_views(const WeightPlan& plan) {
  views_.resize(layout_.stages.size());
  for (size_t i = 0; i < plan.vectors.size(); i++) {
    const VectorSource& v = plan.vectors[i].source;
    views_[size_t(v.stage)].vectors[size_t(v.role)] =
        ConstTensor(device_home_ + layout_.vector_at[i], DType::f32, {v.vector_size});
  }
  for (size_t stage = 0; stage < views_.size(); stage++)
    for (const MatrixPlace& m : layout_.stages[stage].matrices)
      if (m.homes.device > 0)
        views_[stage].matrices[size_t(m.role)] =
            m.weight(0, m.homes.device, device_home_ + m.device_at);
}

// The next stage in the circle that has a slot; -1: none does.
int WeightPrefetcher::after(int owner) const {
  const auto stages = int(layout_.stages.size());
  for (int i = 1; i <= stages; i++) {
    const int stage = (owner + i) % stages;
    if (!passengers(stage).empty()) return stage;
  }
  return -1;
}

void WeightPrefetcher::fill(int owner, Stream& lane) {
  const int64_t use = front_use_ + int64_t(held_.size());
  held_.push_back(owner);
  next_ = after(owner);
  ring_->begin_fill(use, lane);
  for (const int stage : passengers(owner)) {
    const StageLayout& s = layout(stage);
    std::byte* const to = ring_->data(use) + s.slot_at;
    if (s.host_bytes > 0) {
      const Traced traced(lane, s.host_bytes, "stage {} from host", stage);
      link_.copy(lane, to, host_home_.at(s.host_at), s.host_bytes);
      traffic_.from_host += s.host_bytes;
    }
    disk_panels_->load(stage, to, lane, link_);
  }
  ring_->end_fill(use, lane);
}

void WeightPrefetcher::prefetch(int) {
  if (!lane_) return;
  while (held_.size() < size_t(ring_->slots())) fill(next_, *lane_);
  disk_panels_->read_ahead();
}

// Goes on from another stage: a run may have ended in the middle of a step.
void WeightPrefetcher::restart(int owner) {
  front_use_ += int64_t(held_.size());
  held_.clear();
  next_ = owner;
}

LayerWeights WeightPrefetcher::acquire(int stage, Stream& reader) {
  LayerWeights weights = views_[size_t(stage)];
  if (!moves(stage)) return weights;
  const StageLayout& s = layout(stage);
  const bool here = !held_.empty() && held_.front() == s.slot_of;
  if (!here || (!lane_ && stage == s.slot_of)) {
    restart(s.slot_of);
    fill(s.slot_of, lane_ ? *lane_ : reader);
  }
  ring_->begin_read(front_use_, reader);
  const std::byte* const slot = ring_->data(front_use_) + s.slot_at;
  for (const MatrixPlace& m : s.matrices) {
    if (m.streamed() == 0) continue;
    const Weight streamed = m.weight(m.homes.device, m.streamed(), slot + m.slot_at);
    if (m.homes.device == 0) {
      weights.matrices[size_t(m.role)] = streamed;
    } else {
      weights.cut = m.role;
      weights.rest = streamed;
    }
  }
  return weights;
}

void WeightPrefetcher::look_up(Matrix role, EmbedArgs args, Stream& reader) {
  const MatrixPlace* const table = layout_.table(role);
  ensure(table != nullptr, "rows of {} are looked up, of which the model has none", name(role));
  const int64_t rows = table->plan->weight.n;
  for (int64_t i = 0; i < args.indices.shape[0]; i++) {  // no run would miss a row that none has
    const int64_t row = int64_t{args.indices.as<int32_t>()[i]} + args.offset;
    ensure(row >= 0 && row < rows, "embedding row {} of a table of {}", row, rows);
  }
  const PanelHomes& homes = table->homes;
  const auto in_place = [&](int64_t first, int64_t panels, const std::byte* at) {
    if (panels == 0) return;
    EmbedArgs some = args;
    some.table = table->weight(first, panels, at);
    some.offset = int32_t(args.offset - first * kPanelRows);
    some.partial = some.table.n < rows;
    ops_.embed(reader, some);
  };
  in_place(0, homes.device, device_home_ + table->device_at);
  in_place(homes.device, homes.host, host_home_.at(table->host_at));
  if (homes.disk > 0) disk_rows_->look_up(*table, args, reader);
}

void WeightPrefetcher::release(int stage, Stream& reader) {
  if (!moves(stage)) return;
  const int owner = layout(stage).slot_of;
  ensure(!held_.empty() && held_.front() == owner, "stage {} is released but was not acquired",
         stage);
  if (stage != passengers(owner).back()) return;
  ring_->end_read(front_use_++, reader);
  held_.pop_front();
}

StepTraffic WeightPrefetcher::step_traffic(int stage) const { return expected_[size_t(stage)]; }

StepTraffic WeightPrefetcher::step_traffic() const {
  StepTraffic sum;
  for (const StepTraffic& s : expected_) sum += s;
  return sum;
}

void WeightPrefetcher::settle() {
  if (lane_) lane_->synchronize();
  disk_panels_->settle();
}

StepTraffic WeightPrefetcher::ahead() const {
  StepTraffic sum;
  for (const int owner : held_)
    for (const int stage : passengers(owner)) sum += expected_[size_t(stage)];
  sum.file += disk_panels_->ahead();
  return sum;
}

}  // namespace hydrant
