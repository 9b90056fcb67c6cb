// Caches of which a part is at home on the host or on disk.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "offload/cache_layout.hpp"
#include "offload/disk_file.hpp"
#include "offload/link.hpp"

namespace hydrant {

class OffloadedCaches final : public CacheHomes {
 public:
  using OpenFile = std::function<std::unique_ptr<DiskFile>(const CacheOffload&, uint64_t bytes)>;

  // Throws bad_config for options that cannot be. up: the way to the device where weights take the
  // same one. host: needed where wants_host(); it computes in host memory, and its streams and the
  // device's wait for each other's events. Both outlive this, and this outlives what open() gives.
  OffloadedCaches(const Device& device, const CacheOffload& options, Link* up = nullptr,
                  Device* host = nullptr, OpenFile open_file = open_spill_file);
  // Rows are to be attended on the host, and not by the device.
  static bool wants_host(const Device& device, const CacheOffload& options);
  // In the folder of the options.
  static std::unique_ptr<DiskFile> open_spill_file(const CacheOffload& options, uint64_t bytes);

  std::vector<int32_t> resident(const KvShape& shape) const override;
  Device* host() const override { return host_; }
  CacheNeed need(const KvShape& shape, const Ops& ops) const override;
  std::unique_ptr<CacheFeed> open(Device& device, const KvShape& shape,
                                  const KvCache& cache) override;

  // What tells before a step what it moves: for homes like those that open() gave last.
  CacheLayout layout(const KvShape& shape, const Ops& ops) const;
  Link& up() { return up_; }
  const CacheTraffic& traffic() const { return traffic_; }  // of all jobs so far

 private:
  CacheOffload options_;
  Device* host_;  // null where the device attends all rows
  bool staged_, written_whole_ = false;
  OpenFile open_file_;
  Link own_up_, down_;
  Link& up_;
  CacheTraffic traffic_;
};

}  // namespace hydrant
