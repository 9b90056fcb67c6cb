// Requests of a file done by threads, each with one at a time.
#pragma once
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>
#include <vector>

#include "offload/disk_file.hpp"

namespace hydrant {

class DiskThreads final : public DiskFile {
 public:
  DiskThreads(SpillFile file, int requests);
  ~DiskThreads() override { queue_.stop(); }
  void run(std::span<DiskRequest> requests) override;

 private:
  SpillFile file_;
  boost::asio::io_context queue_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> open_;
  std::vector<std::jthread> threads_;
};

}  // namespace hydrant
