#include "offload/disk_tail.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.hpp"

namespace hydrant {

DiskTail::Kept* DiskTail::find(int64_t unit) {
  const auto at =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.unit == unit; });
  return at == kept_.end() ? nullptr : &*at;
}

void DiskTail::make_room(std::span<const size_t> changed, std::vector<Leaving>& leaving) {
  now_++;
  for (const size_t unit : changed)
    if (Kept* const kept = find(int64_t(unit))) kept->touched = now_;
  for (const size_t unit : changed) {
    if (find(int64_t(unit))) continue;
    // Places that are free have been touched least.
    const auto oldest =
        std::min_element(kept_.begin(), kept_.end(),
                         [](const Kept& a, const Kept& b) { return a.touched < b.touched; });
    ensure(oldest != kept_.end() && oldest->touched < now_, "{} units change at once, {} have room",
           changed.size(), kept_.size());
    if (oldest->unit >= 0)
      leaving.push_back({size_t(oldest->unit), bytes(size_t(oldest - kept_.begin()))});
    *oldest = {int64_t(unit), now_};
  }
}

void DiskTail::update(std::span<const size_t> changed, const std::byte* image) {
  for (const size_t unit : changed)
    std::memcpy(bytes(size_t(find(int64_t(unit)) - kept_.data())), image + unit * unit_, unit_);
}

void DiskTail::restore(std::byte* image) const {
  for (size_t i = 0; i < kept_.size(); i++)
    if (kept_[i].unit >= 0) std::memcpy(image + size_t(kept_[i].unit) * unit_, bytes(i), unit_);
}

void DiskTail::clear() { std::fill(kept_.begin(), kept_.end(), Kept{}); }

}  // namespace hydrant
