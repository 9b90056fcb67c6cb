#include "offload/cache_layout.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/aligned.hpp"

namespace hydrant {
CacheMoves& CacheMoves::operator+=(const CacheMoves& other) {
  to_device += other.to_device;
  to_host += other.to_host;
  read += other.read;
  written += other.written;
  return *this;
}

std::vector<RowHomes> place_rows(const Shares& shares, int32_t groups, int32_t rows_per_group) {
  check_shares(shares, "placement.cache");
  // All of it when nothing is to be elsewhere, whatever sums have been rounded to.
  const double device = shares.device / 100;
  const double memory = shares.disk == 0 ? 1 : (shares.device + shares.host) / 100;
  std::vector<RowHomes> homes;
  double owed_device = 0, owed_memory = 0;  // rows
  for (int32_t group = 0; group < groups; group++) {
    const auto take = [&](double share, double& owed, int32_t least) {
      owed += share * rows_per_group;
      const int32_t rows = std::clamp(int32_t(std::lround(owed)), least, rows_per_group);
      owed -= rows;
      return rows;
    };
    const int32_t on_device = take(device, owed_device, 0);
    const int32_t in_memory = take(memory, owed_memory, on_device);
    homes.push_back({on_device, in_memory - on_device, rows_per_group - in_memory});
  }
  return homes;
}

CacheLayout::CacheLayout(const KvShape& shape, const Shares& shares, bool staged, const Ops& ops,
                         bool written_whole)
    : shape_(shape),
      staged_(staged),
      written_whole_(written_whole),
      homes_(place_rows(shares, shape.groups, shape.rows_per_group)),
      run_bytes_(ops.kv_run_bytes(shape.dtype, shape.head_dim)) {
  for (size_t layer = 0; layer < shape.capacity.size(); layer++) {
    head_bytes_.push_back(run_bytes_ * size_t(slots_in(shape, layer) / kRunSlots));
    const auto l = int32_t(layer);
    for (const RowHomes& h : homes_) {
      const size_t host = size_t(h.host) * place_bytes(l), disk = size_t(h.disk) * place_bytes(l),
                   images = size_t(h.disk) * block_bytes(l);
      host_at_.push_back(host_bytes_);
      file_at_.push_back(file_bytes_);
      host_bytes_ += align_up(host, size_t{64});
      file_bytes_ += images;
      if (staged) slot_bytes_ = std::max(slot_bytes_, host + disk);
      image_bytes_ = std::max(image_bytes_, images);
    }
  }
  slot_bytes_ = align_up(slot_bytes_, size_t{64});
}

size_t CacheLayout::block_bytes(int32_t layer) const { return align_up(place_bytes(layer), kUnit); }

CacheView CacheLayout::view(CacheView scores, int32_t layer, std::byte* rows,
                            size_t place_bytes) const {
  scores.kv = {rows, head_bytes(layer), run_bytes_};
  scores.place_bytes = place_bytes;
  return scores;
}

CacheView CacheLayout::host_view(CacheView scores, int32_t layer, int32_t group,
                                 std::byte* rows) const {
  const RowHomes& h = homes(group);
  scores.first = h.device;
  scores.places = h.host;
  return view(scores, layer, rows, place_bytes(layer));
}

CacheView CacheLayout::disk_view(CacheView scores, int32_t layer, int32_t group, std::byte* rows,
                                 size_t place_bytes) const {
  const RowHomes& h = homes(group);
  scores.first = h.first_on_disk();
  scores.places = h.disk;
  return view(scores, layer, rows, place_bytes);
}

CacheMoves CacheLayout::token_moves(int32_t tokens) const {
  if (!shape_.host_attends) return {};
  const auto out = size_t(tokens) * size_t(shape_.heads) * size_t(shape_.head_dim) * sizeof(float),
             kv =
                 size_t(tokens) * size_t(shape_.kv_heads) * size_t(shape_.head_dim) * sizeof(float);
  return {.to_device = out, .to_host = out + 2 * kv};
}

int32_t filled_runs(const policy::SlotLayout& slots, int32_t position) {
  return ceil_div(std::min(position, slots.capacity()), kRunSlots);
}

CacheMoves CacheLayout::decode_moves(int32_t layer, int32_t group, int32_t place, int32_t position,
                                     const policy::SlotLayout& slots) const {
  const RowHomes& h = homes(group);
  const auto heads = size_t(shape_.kv_heads);
  if (place < h.device) return {};
  CacheMoves moves = token_moves(1);
  if (staged_) {
    moves.to_device = heads * size_t(filled_runs(slots, position)) * run_bytes_;
    moves.to_host = written_whole_
                        ? heads * size_t(filled_runs(slots, position + 1)) * run_bytes_
                        : heads * (slots.evicts_at(position) ? 2 : 1) * (run_bytes_ / kRunSlots);
  }
  if (place >= h.first_on_disk()) moves.read = block_bytes(layer);
  return moves;
}

double CacheLayout::mean_written(const policy::SlotLayout& slots, int32_t position) const {
  const double run = double(run_bytes_), heads = shape_.kv_heads;
  const auto touched =
      double(run_bytes_ % kUnit == 0 ? run_bytes_ : align_up(run_bytes_, kUnit) + kUnit);
  double bytes = run / kRunSlots;  // newest tokens, one behind another
  if (slots.evicts_at(position) && slots.recent == 0) bytes = 0;
  if (slots.evicts_at(position) && slots.heavy > 0) {
    const double moves = slots.heavy / double(slots.heavy + 1),
                 other = 1 - 1.0 / ceil_div(slots.heavy, kRunSlots);
    bytes += moves * other * touched;
  }
  return heads * bytes;
}

CacheMoves CacheLayout::prompt_moves(int32_t layer, int32_t group, int32_t place, int32_t length,
                                     const policy::SlotLayout& slots) const {
  const RowHomes& h = homes(group);
  const auto heads = size_t(shape_.kv_heads);
  if (place < h.device) return {};
  CacheMoves moves = token_moves(length);
  const size_t filled = size_t(filled_runs(slots, length)) * run_bytes_;
  if (staged_) moves.to_host = heads * filled;
  if (place < h.first_on_disk()) return moves;
  size_t end = 0;  // of the units counted
  for (size_t head = 0; head < heads; head++) {
    const size_t at = head * head_bytes(layer);
    const size_t first = std::max(end, at / kUnit * kUnit), last = align_up(at + filled, kUnit);
    moves.written += last - first;
    end = last;
  }
  return moves;
}

}  // namespace hydrant
