// Hidden states of which a part waits on the host.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "offload/link.hpp"
#include "offload/shares.hpp"
#include "runtime/engine/feed.hpp"

namespace hydrant {

struct HiddenOffload {
  Shares shares{};  // of a step's tokens; nothing is kept on disk
  int slots = 2;    // of the ring on the device, a piece each; at least 2
  // false: the reader's own lane moves what it needs, through a single slot.
  bool overlap = true;
  double link = 0;  // bytes a second between host and device, each way; 0: as fast as it goes
};

// Whether a piece of a step of `all` tokens is at home on the host: its middle is.
bool is_on_host(const HiddenOffload& options, const PieceTokens& piece, double all);

// Bytes that the pieces of a step move to the host, and as many back: nothing where each of those
// at home there can keep its slot of the ring.
uint64_t hidden_moves(const HiddenOffload& options, const HiddenShape& shape,
                      std::span<const PieceTokens> pieces);

// What hidden states have moved so far, over the link.
struct HiddenTraffic {
  std::atomic<uint64_t> to_device = 0, to_host = 0;
};

class OffloadedHidden final : public HiddenHomes {
 public:
  // Throws bad_config for options that cannot be. up: the way to the device where weights take the
  // same one; it outlives this, and this outlives what open() gives.
  explicit OffloadedHidden(const HiddenOffload& options, Link* up = nullptr);

  HiddenNeed need(const HiddenShape& shape) const override;
  std::unique_ptr<HiddenFeed> open(Device& device, const HiddenShape& shape) override;

  const HiddenTraffic& traffic() const { return traffic_; }

 private:
  HiddenOffload options_;
  Link own_up_, down_;
  Link& up_;
  HiddenTraffic traffic_;
};

}  // namespace hydrant
