#include "offload/host_attention.hpp"

#include "runtime/device/traced.hpp"

namespace hydrant {
namespace {

size_t bytes_of(const ConstTensor& t) { return size_t(row_bytes(t.dtype, t.shape.count())); }

}  // namespace

HostAttention::HostAttention(Device& device, Device& host, Link& up, Link& down,
                             CacheTraffic& traffic)
    : up_(up),
      down_(down),
      traffic_(traffic),
      sent_(device.make_event()),
      attended_(host.make_event()),
      settled_(host.make_event()),
      lane_(host.make_stream("attend_cache", /*inline_work=*/false)) {}

void HostAttention::to_host(Tensor to, ConstTensor from, Stream& compute) {
  const size_t bytes = bytes_of(from);
  {
    const Traced traced(compute, bytes, "tokens to the host");
    down_.copy(compute, to.data, from.data, bytes);
  }
  traffic_.to_host += bytes;
  compute.record(*sent_);
  lane_->wait(*sent_);
}

void HostAttention::to_device(Tensor to, ConstTensor from, Stream& compute) {
  const size_t bytes = bytes_of(from);
  compute.wait(*attended_);
  const Traced traced(compute, bytes, "tokens from the host");
  up_.copy(compute, to.data, from.data, bytes);
  traffic_.to_device += bytes;
}

void HostAttention::finish_step(Stream& reader) {
  lane_->record(*settled_);
  reader.wait(*settled_);
}

}  // namespace hydrant
