// The lane of a second device, the host's own, that attends rows where they lie.
#pragma once
#include <memory>

#include "offload/cache_offload.hpp"
#include "offload/link.hpp"
#include "runtime/engine/feed.hpp"

namespace hydrant {

// Only tokens cross the bus: what a layer's products have made of them, and what attention makes of
// that. Prompts cross as well as tokens that are decoded, so that a row's cache is written by one
// device alone, in its own layout; a device with tensor cores would rather attend prompts itself,
// and send their keys and values.
//
// Order between lanes: `sent`, before the host reads tokens; `attended`, before the device reads
// what became of them, or sends others; `settled`, before a step is over. Either device's streams
// wait for events that the other's have recorded.
class HostAttention final : public HostLane {
 public:
  HostAttention(Device& device, Device& host, Link& up, Link& down, CacheTraffic& traffic);

  Stream& stream() override { return *lane_; }
  void to_host(Tensor to, ConstTensor from, Stream& compute) override;
  void attended() override { lane_->record(*attended_); }
  void to_device(Tensor to, ConstTensor from, Stream& compute) override;
  // The reader's later work comes after all that was enqueued here.
  void finish_step(Stream& reader);

 private:
  Link &up_, &down_;
  CacheTraffic& traffic_;
  std::unique_ptr<Event> sent_, attended_, settled_;
  std::unique_ptr<Stream> lane_;  // last: its work ends before what it uses
};

}  // namespace hydrant
