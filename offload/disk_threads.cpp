#include "offload/disk_threads.hpp"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <cerrno>
#include <future>
#include <vector>

namespace hydrant {
namespace {

void move_all(int descriptor, DiskRequest& r) {
  while (!r.done()) {
    std::byte* const at = r.data + r.moved;
    const size_t left = r.bytes - r.moved;
    const auto offset = off_t(r.offset + r.moved);
    const ssize_t moved =
        r.write ? ::pwrite(descriptor, at, left, offset) : ::pread(descriptor, at, left, offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) r.error = errno;
    if (moved <= 0) return;
    r.moved += size_t(moved);
  }
}

}  // namespace

// Not Asio's pool of threads: it would wait for ever for those it has when the next cannot start.
DiskThreads::DiskThreads(SpillFile file, int requests)
    : file_(std::move(file)), open_(queue_.get_executor()) {
  try {
    for (int i = 0; i < requests; i++) threads_.emplace_back([this] { queue_.run(); });
  } catch (...) {
    queue_.stop();
    throw;
  }
}

void DiskThreads::run(std::span<DiskRequest> requests) {
  std::vector<std::future<void>> moved;
  moved.reserve(requests.size());
  for (DiskRequest& r : requests)
    moved.push_back(boost::asio::post(
        queue_, boost::asio::use_future([this, &r] { move_all(file_.descriptor(), r); })));
  for (std::future<void>& m : moved) m.get();
}

}  // namespace hydrant
