#include "offload/disk_uring.hpp"

#include <fcntl.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstring>

#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

int duplicate(int descriptor) {
  const int again = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (again < 0) fail(Fault::io, "the file of the cache: {}", std::strerror(errno));
  return again;
}

}  // namespace

DiskUring::DiskUring(const SpillFile& file, int requests) : context_(1) {
  for (int i = 0; i < requests; i++) {
    queues_.emplace_back(context_);
    queues_.back().assign(duplicate(file.descriptor()));
  }
}

void DiskUring::run(std::span<DiskRequest> requests) {
  requests_ = requests;
  next_ = 0;
  for (Queue& queue : queues_) begin_next(queue);
  context_.restart();
  context_.run();
}

void DiskUring::begin_next(Queue& queue) {
  if (next_ < requests_.size()) go_on(queue, requests_[next_++]);
}

void DiskUring::go_on(Queue& queue, DiskRequest& r) {
  const auto moved = [this, &queue, &r](const boost::system::error_code& error, size_t bytes) {
    r.moved += bytes;
    if (error && error != boost::asio::error::eof) r.error = error.value();
    if (error || bytes == 0 || r.done())
      begin_next(queue);
    else
      go_on(queue, r);
  };
  const boost::asio::mutable_buffer rest(r.data + r.moved, r.bytes - r.moved);
  if (r.write)
    queue.async_write_some_at(r.offset + r.moved, rest, moved);
  else
    queue.async_read_some_at(r.offset + r.moved, rest, moved);
}

}  // namespace hydrant
