// Requests of a file done by threads, each with one at a time.
#pragma once
#include <boost/asio/thread_pool.hpp>

#include "offload/disk_file.hpp"

namespace hydrant {

class DiskThreads final : public DiskFile {
 public:
  DiskThreads(SpillFile file, int requests) : file_(std::move(file)), pool_(size_t(requests)) {}
  void run(std::span<DiskRequest> requests) override;

 private:
  SpillFile file_;
  boost::asio::thread_pool pool_;
};

}  // namespace hydrant
