#include "offload/disk_caches.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "offload/disk_writes.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/traced.hpp"

namespace hydrant {
namespace {

constexpr size_t kUnit = CacheLayout::kUnit;

int32_t layers_of(const CacheLayout& layout) { return int32_t(layout.shape().capacity.size()); }

template <class Use>
void each_tail(const CacheLayout& layout, const Use& use) {
  for (int32_t layer = 0; layer < layers_of(layout); layer++)
    for (int32_t group = 0; group < layout.shape().groups; group++)
      for (int32_t row = 0; row < layout.homes(group).disk; row++) use(tail_units(layout, layer));
}

}  // namespace

size_t DiskCaches::tail_bytes(const CacheLayout& layout) {
  size_t bytes = 0;
  each_tail(layout, [&](size_t units) { bytes += units * kUnit; });
  return bytes;
}

DiskCaches::DiskCaches(std::unique_ptr<DiskFile> file, const std::string& folder, Device& device,
                       const CacheLayout& layout, int slots, bool own_lane, std::byte* images,
                       std::byte* tails, CacheTraffic& traffic)
    : file_(std::move(file)), folder_(folder), layout_(layout), traffic_(traffic), images_(images) {
  for (int i = 0; i < slots; i++) slots_.push_back({device.make_event(), device.make_event()});
  const KvShape& shape = layout.shape();
  lives_.resize(size_t(shape.groups) * size_t(shape.rows_per_group));
  lost_.resize(lives_.size());
  first_row_.push_back(0);
  for (int32_t group = 0; group < shape.groups; group++)
    first_row_.push_back(first_row_.back() + size_t(layout.homes(group).disk));
  each_tail(layout, [&](size_t units) {
    tails_.emplace_back(tails, units, kUnit);
    tails += units * kUnit;
  });
  if (own_lane) lane_ = device.make_stream("disk_cache", /*inline_work=*/false);
}

size_t DiskCaches::index(int32_t group, int32_t place) const {
  return size_t(group) * size_t(layout_.shape().rows_per_group) + size_t(place);
}

void DiskCaches::admit(int32_t group, int32_t place) {
  const std::lock_guard lock(rows_);
  lives_[index(group, place)]++;
  lost_[index(group, place)].clear();
}

std::string DiskCaches::failure(int32_t group, int32_t place) const {
  const std::lock_guard lock(rows_);
  return lost_[index(group, place)];
}

DiskCaches::Row DiskCaches::row(const Use& use, int32_t place, int32_t position,
                                const policy::SlotLayout& slots) const {
  const std::lock_guard lock(rows_);
  return {place, position, slots, lives_[index(use.group, place)]};
}

bool DiskCaches::is_lost(const Use& use, const Row& row) const {
  const std::lock_guard lock(rows_);
  const size_t i = index(use.group, row.place);
  return lives_[i] == row.life && !lost_[i].empty();
}

void DiskCaches::lose(const Use& use, const Row& row, std::string why) {
  const std::lock_guard lock(rows_);
  const size_t i = index(use.group, row.place);
  if (lives_[i] == row.life && lost_[i].empty()) lost_[i] = std::move(why);
}

size_t DiskCaches::block_at(const Use& use, const Row& row) const {
  return size_t(row.place - layout_.homes(use.group).first_on_disk()) *
         layout_.block_bytes(use.layer);
}

DiskTail& DiskCaches::tail(const Use& use, const Row& row) {
  const auto in_group = size_t(row.place - layout_.homes(use.group).first_on_disk());
  return tails_[size_t(use.layer) * first_row_.back() + first_row_[size_t(use.group)] + in_group];
}

int64_t DiskCaches::fetch(int32_t layer, const ActiveGroup& group, Stream* caller) {
  const int64_t number = first_use_ + int64_t(uses_.size());
  const auto use = std::make_shared<Use>();
  use->layer = layer;
  use->group = group.group;
  use->image = image(number);
  const RowHomes& homes = layout_.homes(group.group);
  for (const Segment& s : group.decode)
    if (s.place >= homes.first_on_disk()) use->read.push_back(row(*use, s.place, s.first, {}));
  uses_.push_back(use);
  Stream& on = lane(caller);
  if (!use->read.empty()) {
    const Traced traced(on, use->read.size() * layout_.block_bytes(layer), "read layer {} group {}",
                        layer, group.group);
    on.fill(use->image, size_t(homes.disk) * layout_.block_bytes(layer),
            [this, use] { read(*use); });
  }
  on.record(*slot(number).ready);
  return number;
}

void DiskCaches::begin_read(int64_t use, Stream& reader) const { reader.wait(*slot(use).ready); }

std::byte* DiskCaches::image(int64_t use) const {
  return images_ + size_t(use) % slots_.size() * layout_.image_bytes();
}

void DiskCaches::stored(std::span<const Segment> decode, const CacheView& view, Stream& by) {
  const std::shared_ptr<Use> use = uses_.front();
  bool evicts = false;
  for (const Segment& s : decode) {
    use->decode.push_back(row(*use, s.place, s.first, view.plans[s.place].slots));
    evicts |= use->decode.back().slots.evicts_at(s.first);
  }
  if (!evicts) return;
  use->victims.resize(size_t(view.places) * size_t(view.kv_heads));
  by.copy(use->victims.data(), view.victim + view.head_index(view.first, 0),
          use->victims.size() * sizeof(int32_t));
  // A lane that has failed drops its work, and with it the use, while the copy is still to come.
  by.fill(nullptr, 0, [use] {});
}

void DiskCaches::stored(const PromptSegment& prompt, const CacheView& view) {
  Use& use = *uses_.front();
  const int32_t place = prompt.segment.place;
  use.prompts.push_back(row(use, place, prompt.length, view.plans[place].slots));
}

void DiskCaches::release(Stream& last) {
  const std::shared_ptr<Use> use = uses_.front();
  Stream& on = lane(&last);
  last.record(*slot(first_use_).stored);
  on.wait(*slot(first_use_).stored);
  uses_.pop_front();
  first_use_++;
  if (use->decode.empty() && use->prompts.empty()) return;
  const Traced traced(on, 0, "write layer {} group {}", use->layer, use->group);
  on.fill(use->image, size_t(layout_.homes(use->group).disk) * layout_.block_bytes(use->layer),
          [this, use] { write(*use); });
}

void DiskCaches::request(const Use& use, const Row& row, bool write, size_t at, std::byte* data,
                         size_t bytes) {
  const uint64_t offset = layout_.file_at(use.layer, use.group) + block_at(use, row) + at;
  requests_.push_back({.write = write, .offset = offset, .data = data, .bytes = bytes});
  requested_by_.push_back(&row);
}

void DiskCaches::run_requests(const Use& use) {
  file_->run(requests_);
  for (size_t i = 0; i < requests_.size(); i++) {
    const DiskRequest& r = requests_[i];
    (r.write ? traffic_.written : traffic_.read) += r.moved;
    if (r.done()) continue;
    lose(use, *requested_by_[i],
         fmt::format("memory.folder: {}: {} the row's cache in layer {}: {}", folder_,
                     r.write ? "writing" : "reading", use.layer,
                     r.error ? std::strerror(r.error)
                             : fmt::format("{} bytes of {}", r.moved, r.bytes).c_str()));
  }
  requests_.clear();
  requested_by_.clear();
}

void DiskCaches::read(const Use& use) {
  const size_t bytes = layout_.block_bytes(use.layer);
  for (const Row& row : use.read)
    if (!is_lost(use, row))
      request(use, row, /*write=*/false, 0, use.image + block_at(use, row), bytes);
  run_requests(use);
  for (const Row& row : use.read) tail(use, row).restore(use.image + block_at(use, row));
}

std::vector<size_t> DiskCaches::changed(const Use& use, const Row& row) const {
  const auto heads = size_t(layout_.shape().kv_heads);
  const auto in_group = size_t(row.place - layout_.homes(use.group).first_on_disk());
  const std::span<const int32_t> victims(use.victims);
  return changed_units(layout_, use.layer, row.slots, row.position,
                       victims.empty() ? victims : victims.subspan(in_group * heads, heads));
}

void DiskCaches::write_prompt(const Use& use, const Row& row) {
  tail(use, row).clear();
  const size_t filled = size_t(filled_runs(row.slots, row.position)) * layout_.run_bytes();
  std::byte* const block = use.image + block_at(use, row);
  size_t begin = 0, end = 0;  // units that heads have filled without a gap
  const auto flush = [&] {
    if (end > begin) request(use, row, /*write=*/true, begin, block + begin, end - begin);
  };
  for (int32_t head = 0; head < layout_.shape().kv_heads; head++) {
    const size_t at = size_t(head) * layout_.head_bytes(use.layer), first = at / kUnit * kUnit;
    if (first > end) {
      flush();
      begin = first;
    }
    end = align_up(at + filled, kUnit);
  }
  flush();
}

void DiskCaches::write(const Use& use) {
  std::vector<std::vector<size_t>> changes;
  std::vector<DiskTail::Leaving> leaving;
  for (const Row& row : use.decode) {
    changes.push_back(changed(use, row));
    leaving.clear();
    tail(use, row).make_room(changes.back(), leaving);
    for (const DiskTail::Leaving& l : leaving)
      if (!is_lost(use, row)) request(use, row, /*write=*/true, l.unit * kUnit, l.bytes, kUnit);
  }
  for (const Row& row : use.prompts) write_prompt(use, row);
  run_requests(use);
  for (size_t i = 0; i < use.decode.size(); i++)
    tail(use, use.decode[i]).update(changes[i], use.image + block_at(use, use.decode[i]));
}

}  // namespace hydrant
