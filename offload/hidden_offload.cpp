#include "offload/hidden_offload.hpp"

#include "offload/hidden_prefetcher.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

constexpr int kMostSlots = 64;

HiddenOffload checked(const HiddenOffload& o) {
  check_shares(o.shares, "placement.activations");
  if (o.shares.disk > 0)
    fail(Fault::bad_config,
         "placement.activations.disk: {} percent, must be 0: hidden states wait in memory",
         o.shares.disk);
  if (o.slots < 2 || o.slots > kMostSlots)
    fail(Fault::bad_config, "prefetch.cache_slots: {}, must be 2 to {}", o.slots, kMostSlots);
  check_link(o.link);
  return o;
}

}  // namespace

bool is_on_host(const HiddenOffload& o, const PieceTokens& piece, double all) {
  const double middle = double(piece.token) + double(piece.tokens) / 2;
  return o.shares.host > 0 && middle >= o.shares.device / 100 * all;
}

uint64_t hidden_moves(const HiddenOffload& o, const HiddenShape& shape,
                      std::span<const PieceTokens> pieces) {
  const double all = pieces.empty() ? 0 : double(pieces.back().token + pieces.back().tokens);
  int64_t number = 0, tokens = 0;
  for (const PieceTokens& p : pieces) {
    if (!is_on_host(o, p, all)) continue;
    number++;
    tokens += p.tokens;
  }
  if (number <= (o.overlap ? o.slots : 1)) return 0;
  return uint64_t(tokens) * uint64_t(shape.width) * sizeof(float) * uint64_t(shape.stages - 1);
}

OffloadedHidden::OffloadedHidden(const HiddenOffload& options, Link* up)
    : options_(checked(options)),
      own_up_(options.link),
      down_(options.link),
      up_(up ? *up : own_up_) {}

HiddenNeed OffloadedHidden::need(const HiddenShape& shape) const {
  return HiddenPrefetcher::memory(shape, options_);
}

std::unique_ptr<HiddenFeed> OffloadedHidden::open(Device& device, const HiddenShape& shape) {
  return std::make_unique<HiddenPrefetcher>(device, shape, options_, up_, down_, traffic_);
}

}  // namespace hydrant
