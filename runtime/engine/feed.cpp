#include "runtime/engine/feed.hpp"

#include "runtime/base/error.hpp"

namespace hydrant {

const AttendedView& CacheViews::of(int32_t place) const {
  for (const AttendedView& view : *this)
    if (view.has(place)) return view;
  fail(Fault::internal, "the cache has no place {}", place);
}

}  // namespace hydrant
