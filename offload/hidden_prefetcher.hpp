// The feed of hidden states that move.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "offload/hidden_offload.hpp"
#include "offload/staging_ring.hpp"

namespace hydrant {

// A piece whose home is the host passes through a slot of the ring in each stage, and goes home
// after it. Where no more pieces have that home than there are slots, each keeps its slot for the
// whole step, and nothing moves.
//
// Order between lanes: `ready` and `free` of a slot; `computed`, before the store lane reads it. A
// piece is loaded into a slot that was freed after the piece itself was stored, so `free` is
// enough.
class HiddenPrefetcher final : public HiddenFeed {
 public:
  // Options that have been checked. The others outlive this.
  HiddenPrefetcher(Device& device, const HiddenShape& shape, const HiddenOffload& options, Link& up,
                   Link& down, HiddenTraffic& traffic);

  static HiddenNeed memory(const HiddenShape& shape, const HiddenOffload& options);

  void begin_step(std::span<const PieceTokens> pieces) override;
  Tensor acquire(int stage, size_t piece, Stream& reader) override;
  void release(int stage, size_t piece, Stream& reader) override;

 private:
  struct Where {
    bool on_host = false;
    int64_t at = 0;      // token of its home
    int64_t number = 0;  // among those on the host
    int64_t tokens = 0;
  };
  std::byte* home(const Where& where) const;
  size_t bytes(const Where& where) const { return size_t(where.tokens) * token_bytes_; }
  int64_t use(int stage, const Where& where) const;
  void load(Stream& lane);
  void load_ahead();

  HiddenShape shape_;
  HiddenOffload options_;
  size_t token_bytes_;
  Link &up_, &down_;
  HiddenTraffic& traffic_;
  Buffer device_, host_;
  std::byte *device_home_ = nullptr, *host_home_ = nullptr;
  std::optional<StagingRing> ring_;

  std::vector<Where> where_;          // [piece of the step]
  std::vector<const Where*> moving_;  // those on the host
  bool stay_ = true;                  // in their slots
  int64_t first_use_ = 0;             // of the ring in this step
  int64_t loaded_ = 0, released_ = 0;

  std::unique_ptr<Event> computed_;
  std::unique_ptr<Stream> load_, store_;  // null without overlap; last: their work ends first
};

}  // namespace hydrant
