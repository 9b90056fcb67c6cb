#include "offload/hidden_prefetcher.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.hpp"
#include "runtime/device/copied_memory.hpp"
#include "runtime/device/traced.hpp"

namespace hydrant {
namespace {

int slots_of(const HiddenOffload& o) { return o.overlap ? o.slots : 1; }

// The most of a step's tokens that a share of them can be, in whole pieces.
int64_t most_tokens(const HiddenShape& shape, double percent) {
  if (percent == 0) return 0;
  return std::min(shape.tokens,
                  int64_t(std::ceil(double(shape.tokens) * percent / 100)) + shape.piece_tokens);
}

struct Carved {
  std::byte *device_home, *ring, *host_home;
};
Carved carve(const HiddenShape& shape, const HiddenOffload& o, Arena& device, Arena& host) {
  const auto take = [&](Arena& arena, int64_t tokens) {
    return static_cast<std::byte*>(
        arena.take_bytes(size_t(tokens) * size_t(shape.width) * sizeof(float)));
  };
  Carved c{};
  c.device_home = take(device, most_tokens(shape, o.shares.device));
  if (o.shares.host > 0) c.ring = take(device, shape.piece_tokens * slots_of(o));
  c.host_home = take(host, most_tokens(shape, o.shares.host));
  return c;
}

}  // namespace

HiddenNeed HiddenPrefetcher::memory(const HiddenShape& shape, const HiddenOffload& options) {
  Arena device, host;
  carve(shape, options, device, host);
  return {device.used(), host.used()};
}

HiddenPrefetcher::HiddenPrefetcher(Device& device, const HiddenShape& shape,
                                   const HiddenOffload& options, Link& up, Link& down,
                                   HiddenTraffic& traffic)
    : shape_(shape),
      options_(options),
      token_bytes_(size_t(shape.width) * sizeof(float)),
      up_(up),
      down_(down),
      traffic_(traffic),
      computed_(device.make_event()) {
  const HiddenNeed need = memory(shape, options);
  device_ = device.allocate(Memory::device, need.device, "hidden states on the device");
  host_ = allocate_for_copies(device, need.host, "hidden states on the host");
  Arena on_device(device_), on_host(host_);
  const Carved at = carve(shape, options, on_device, on_host);
  device_home_ = at.device_home;
  host_home_ = at.host_home;
  where_.reserve(shape.pieces);
  moving_.reserve(shape.pieces);
  if (options.shares.host == 0) return;
  ring_.emplace(device, at.ring, slots_of(options), size_t(shape.piece_tokens) * token_bytes_);
  if (!options.overlap) return;
  load_ = device.make_stream("load_hidden", /*inline_work=*/false);
  store_ = device.make_stream("store_hidden", /*inline_work=*/false);
}

void HiddenPrefetcher::begin_step(std::span<const PieceTokens> pieces) {
  ensure(pieces.size() <= shape_.pieces, "{} pieces in a step of at most {}", pieces.size(),
         shape_.pieces);
  where_.clear();
  moving_.clear();
  const double all = pieces.empty() ? 0 : double(pieces.back().token + pieces.back().tokens);
  int64_t on_device = 0, on_host = 0;
  for (const PieceTokens& p : pieces) {
    const bool host = is_on_host(options_, p, all);
    int64_t& at = host ? on_host : on_device;
    where_.push_back({host, at, int64_t(moving_.size()), p.tokens});
    if (host) moving_.push_back(&where_.back());
    at += p.tokens;
  }
  first_use_ += released_;
  released_ = 0;
  loaded_ = int64_t(moving_.size());  // stage 0 loads nothing
  stay_ = !ring_ || moving_.size() <= size_t(ring_->slots());
}

std::byte* HiddenPrefetcher::home(const Where& where) const {
  return (where.on_host ? host_home_ : device_home_) + size_t(where.at) * token_bytes_;
}

int64_t HiddenPrefetcher::use(int stage, const Where& where) const {
  return first_use_ + (stay_ ? 0 : stage * int64_t(moving_.size())) + where.number;
}

void HiddenPrefetcher::load(Stream& lane) {
  const Where& where = *moving_[size_t(loaded_) % moving_.size()];
  const int64_t next = first_use_ + loaded_++;
  ring_->begin_fill(next, lane);
  {
    const Traced traced(lane, bytes(where), "piece {}", where.number);
    up_.copy(lane, ring_->data(next), home(where), bytes(where));
  }
  traffic_.to_device += bytes(where);
  ring_->end_fill(next, lane);
}

void HiddenPrefetcher::load_ahead() {
  const auto all = int64_t(moving_.size()) * shape_.stages;
  while (loaded_ < all && loaded_ - released_ < ring_->slots()) load(*load_);
}

Tensor HiddenPrefetcher::acquire(int stage, size_t piece, Stream& reader) {
  const Where& where = where_[piece];
  std::byte* data = home(where);
  if (where.on_host) {
    const int64_t number = use(stage, where);
    if (stage == 0) {
      ring_->begin_fill(number, reader);
    } else if (!stay_) {
      if (loaded_ == number - first_use_) load(load_ ? *load_ : reader);
      ring_->begin_read(number, reader);
    }
    data = ring_->data(number);
  }
  return {data, DType::f32, {where.tokens, shape_.width}};
}

void HiddenPrefetcher::release(int stage, size_t piece, Stream& reader) {
  const Where& where = where_[piece];
  if (!where.on_host || stay_) return;
  const int64_t number = use(stage, where);
  Stream& lane = store_ ? *store_ : reader;
  if (store_) {
    reader.record(*computed_);
    store_->wait(*computed_);
  }
  if (stage + 1 < shape_.stages) {
    const Traced traced(lane, bytes(where), "piece {}", where.number);
    down_.copy(lane, home(where), ring_->data(number), bytes(where));
    traffic_.to_host += bytes(where);
  }
  ring_->end_read(number, lane);
  released_++;
  if (load_) load_ahead();
}

}  // namespace hydrant
