#include "offload/staging_ring.hpp"

namespace hydrant {

StagingRing::StagingRing(Device& device, std::byte* memory, int slots, size_t slot_bytes) {
  for (int i = 0; i < slots; i++)
    slots_.push_back({memory + size_t(i) * slot_bytes, device.make_event(), device.make_event()});
}

}  // namespace hydrant
