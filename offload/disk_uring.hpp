// Requests of a file given to the kernel's io_uring.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/random_access_file.hpp>
#include <vector>

#include "offload/disk_file.hpp"

namespace hydrant {

class DiskUring final : public DiskFile {
 public:
  // Throws boost::system::system_error where the system does not permit io_uring.
  DiskUring(const SpillFile& file, int requests);
  void run(std::span<DiskRequest> requests) override;

 private:
  using Queue = boost::asio::random_access_file;
  void begin_next(Queue& queue);
  void go_on(Queue& queue, DiskRequest& request);

  boost::asio::io_context context_;
  std::vector<Queue> queues_;  // Asio has one request of a file object under way at a time
  std::span<DiskRequest> requests_;
  size_t next_ = 0;  // not begun
};

}  // namespace hydrant
